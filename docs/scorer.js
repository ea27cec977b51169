// Which page a search shows first. Sphinx rates a word in any heading of a page as high as one in its title, so that long
// pages win; here each word of the query that is in the title of a page, or of the section found, counts extra.
var Scorer = {
  score: ([, title, , , score]) => {
    const query = new URLSearchParams(window.location.search).get("q") || "";
    const words = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [];
    const named = new Set(words(title));
    return score + 4 * words(query).filter((word) => named.has(word)).length;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
