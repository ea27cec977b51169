"""Canaries that are training examples, seen only through the trained model.

Each of n extra examples has a slot in the training set, and is in it or not by a secret coin; afterwards the
model's loss on each tells how well it remembers them. All canaries pass through one model, so their outcomes
are not independent.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence, Sized
from typing import Any, SupportsIndex, cast

import numpy as np

from tightaudit.claims.base import Claim
from tightaudit.evidence.coins import draw_coins, stream
from tightaudit.evidence.run import Run
from tightaudit.support import checks
from tightaudit.support.checks import BoolArray
from tightaudit.support.errors import InputError
from tightaudit.support.extras import needs

with needs("torch", "canaries as training examples"):
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset, TensorDataset

_LABEL_STREAM = 103


class BlackBoxCanaries:
    """n extra examples, each in the training set or not by a fair secret coin.

        canaries = BlackBoxCanaries.mislabelled(spare, n=1000, classes=10)
        train_set = canaries.join(train_set)        # then train on it, in batches of a DataLoader
        report = ta.audit(canaries.run(model), delta=1e-5)

    `examples` are (input, label) pairs that are not in the training set already. The same seed gives the
    same coins, and with `mislabelled` the same labels.
    """

    def __init__(
        self,
        examples: Dataset[Any],
        *,
        ids: Sequence[int] | Sequence[str] | None = None,
        seed: int | None = None,
    ) -> None:
        count = len(cast("Sized", examples))
        coins = draw_coins(checks.count("examples", count, minimum=1), seed=seed)
        self.examples, self.members, self.seed = examples, coins.members, coins.seed
        self.ids = list(range(count)) if ids is None else list(ids)
        if len(self.ids) != count:
            raise InputError("ids", f"{len(self.ids)} ids", f"one per example, {count}")

    @classmethod
    def mislabelled(
        cls, examples: Dataset[Any], *, n: int, classes: int, seed: int | None = None
    ) -> BlackBoxCanaries:
        """The first n examples, each with a wrong label drawn uniformly from the other classes."""
        count, labels = checks.count("n", n, minimum=1), checks.count("classes", classes, minimum=2)
        if count > len(cast("Sized", examples)):
            raise InputError(
                "n", count, f"at most {len(cast('Sized', examples))}, the number of examples given"
            )
        seed = draw_coins(1, seed=seed).seed
        rng = stream(seed, _LABEL_STREAM)
        pairs = [examples[place] for place in range(count)]
        right = np.array([int(label) for _, label in pairs])
        wrong = (right + rng.integers(1, labels, size=count)) % labels
        inputs = torch.stack([torch.as_tensor(value) for value, _ in pairs])
        return cls(TensorDataset(inputs, torch.from_numpy(wrong)), seed=seed)

    @property
    def n(self) -> int:
        """The number of canaries."""
        return int(self.members.size)

    def join(self, dataset: Dataset[Any]) -> Dataset[Any]:
        """The data set with a slot for every canary, whatever its coin.

        Slots are sampled like other records, so that the sampling rate and the number of steps do not depend
        on the coins; a slot whose canary is out adds nothing to the batch it is sampled into. Slots are left
        out of batches when a `DataLoader` fetches them. Batches may come out empty: Opacus's loader is made
        for that, others need batches that are large enough.
        """
        return _Slots(dataset, self.examples, self.members)

    @torch.no_grad()
    def run(
        self,
        model: nn.Module,
        *,
        loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
        claim: Claim | None = None,
        batch_size: int = 256,
    ) -> Run:
        """Scores and secret bits: minus the loss of the trained model on each canary.

        `loss` takes the model's outputs and the labels and returns one value per example; cross-entropy if
        not given. The run is not called independent.
        """
        measure = loss or nn.CrossEntropyLoss(reduction="none")
        device = next((p.device for p in model.parameters()), torch.device("cpu"))
        training = [module for module in model.modules() if module.training]
        model.eval()
        losses = [
            measure(model(inputs.to(device)), labels.to(device)).double().cpu()
            for inputs, labels in DataLoader(self.examples, batch_size=batch_size)
        ]
        for module in training:
            module.training = True
        scores = -torch.cat(losses).numpy()
        if scores.shape != (self.n,):
            raise InputError("loss", f"values of shape {scores.shape}", f"one per canary, {self.n}")
        return Run(
            scores,
            self.members,
            ids=np.asarray(self.ids),
            claim=claim,
            seed=self.seed,
            source="black-box canaries",
        )


class _Slots(Dataset[Any]):
    """Real records, then a slot per canary; those that are out leave no trace in a batch."""

    def __init__(self, dataset: Dataset[Any], examples: Dataset[Any], members: BoolArray) -> None:
        self._dataset, self._examples, self._members = dataset, examples, members
        self._real = len(cast("Sized", dataset))

    def __len__(self) -> int:
        return self._real + self._members.size

    def __getitem__(self, index: SupportsIndex) -> Any:
        place = operator.index(index)
        if not 0 <= place < len(self):
            raise IndexError(place)
        if place < self._real:
            return self._dataset[place]
        if not self._members[place - self._real]:
            expected = "a record that is in: fetch batches with a DataLoader, which leaves empty slots out"
            raise InputError("index", place, expected)
        return self._examples[place - self._real]

    def __getitems__(self, indices: Sequence[SupportsIndex]) -> list[Any]:
        """The records of a batch, which is how a DataLoader asks for them."""
        places = [operator.index(index) for index in indices]
        return [self[place] for place in places if place < self._real or self._members[place - self._real]]
