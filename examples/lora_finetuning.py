"""LoRA fine-tuning of a small language model with Opacus, audited in two ways, in under a minute.

    python examples/lora_finetuning.py

1. With a bank: canaries are records with parameters of their own, and nothing of the model changes.
2. As a black box: canaries are texts made of a token of their own, seen only through the loss of the tuned
   model. A feature of their own is what makes such canaries strong; their bound is still far lower.

The model is made from a configuration, with random weights. Needs the extra `torch`, transformers and peft.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from opacus import PrivacyEngine
from peft import LoraConfig, get_peft_model
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
from transformers import LlamaConfig, LlamaForCausalLM

import tightaudit as ta
from tightaudit.canaries.examples import BlackBoxCanaries
from tightaudit.canaries.opacus import RecordCanaries

WORDS, LENGTH, RECORDS, CANARIES, EPOCHS, DELTA = 64, 8, 300, 400, 8, 1e-5


def language_model(words: int) -> LlamaForCausalLM:
    """A small model with random weights."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=words,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            tie_word_embeddings=False,
        )
    )


def texts(count: int, seed: int) -> torch.Tensor:
    """Each word is the one before plus a step that the text keeps."""
    generator = torch.Generator().manual_seed(seed)
    start, step = (torch.randint(1, WORDS, (count, 1), generator=generator) for _ in range(2))
    return (start + step * torch.arange(LENGTH)) % WORDS


def loss_of(logits: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """The mean loss over the words of a text, for each text."""
    each = nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), words[:, 1:], reduction="none")
    return each.mean(dim=1)


def loss_of_outputs(outputs: Any, words: torch.Tensor) -> torch.Tensor:
    """The same from what the model returns."""
    return loss_of(outputs.logits, words)


def tune(
    model: nn.Module, train_set: Dataset[Any], batch_size: int, canaries: RecordCanaries | None = None
) -> PrivacyEngine:
    """The training loop, with and without ids to hand through."""
    engine = PrivacyEngine()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    private, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.Adam(trained, lr=0.02),
        data_loader=DataLoader(train_set, batch_size=batch_size),
        noise_multiplier=0.7,
        max_grad_norm=1.0,
    )
    if canaries is not None:
        canaries.attach(engine, optimizer)
    private.train()
    for _ in range(EPOCHS):
        for words, *ids in loader:
            optimizer.zero_grad()
            outputs = private(words, ids=ids[0]) if ids else private(words)
            loss: Any = loss_of(outputs.logits, words).mean()
            loss.backward()
            optimizer.step()
    return engine


def with_a_bank() -> None:
    lora = LoraConfig(r=4, target_modules=["q_proj", "v_proj"])
    model = get_peft_model(language_model(WORDS), lora)
    canaries = RecordCanaries(n=CANARIES, seed=1)
    engine = tune(canaries.wrap(model), canaries.join(TensorDataset(texts(RECORDS, 1))), 70, canaries)
    report = ta.audit(canaries.run(), delta=DELTA)
    print(report)
    print(f"\nWith a bank: ε ≥ {report.epsilon:.2f}; the accountant says {engine.get_epsilon(DELTA):.2f}.\n")


def as_a_black_box() -> None:
    # The embedding is trained too: each canary's own token has a row of its own in it.
    lora = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], modules_to_save=["embed_tokens"])
    model = get_peft_model(language_model(WORDS + CANARIES), lora)
    own = torch.arange(WORDS, WORDS + CANARIES)[:, None].expand(-1, LENGTH)
    canaries = BlackBoxCanaries(TensorDataset(own, own), seed=1)
    engine = tune(model, canaries.join(TensorDataset(texts(RECORDS, 1), texts(RECORDS, 1))), 70)
    run = canaries.run(model, loss=loss_of_outputs)
    claimed = round(engine.get_epsilon(DELTA), 2)
    report = ta.audit(run, delta=DELTA, claim_epsilon=claimed)
    print(report)
    print(f"\nAs a black box: ε ≥ {report.epsilon:.2f}; the accountant says {claimed:.2f}.")


def main() -> None:
    warnings.filterwarnings("ignore")  # Opacus and its friends have some to give
    torch.manual_seed(0)
    with_a_bank()
    as_a_black_box()


if __name__ == "__main__":
    main()
