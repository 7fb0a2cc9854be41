"""Words, stems and chunks of a sentence: the pure, cached part of reading."""

import re
from dataclasses import dataclass
from functools import lru_cache

WORD = re.compile(r"[A-Za-zÀ-ÿ]+(?:['’-][A-Za-zÀ-ÿ]+)*|\d+(?:[.,]\d+)*(?:st|nd|rd|th|s)?\b|\d+")

FUNCTION_WORDS = frozenset(
    """a an the and or but nor so yet if then than that this these those there here it its he she they them his
    her hers their theirs we us our ours you your yours i me my mine myself him himself herself itself
    themselves who whom whose which what when where why how is are was were be been being am do does did done
    doing has have had having can could will would shall should may might must of in on at by for from to into
    onto with without within about over under after before during between among through as because since while
    until not no nor too very also just only both either each any some all most more many much such same own
    other another up down out off again once ever never s t ll re ve d m it's i'm i've we've that's don't
    didn't can't couldn't i'd i'll we're you're""".split()  # noqa: SIM905
)
"""Closed-class words: never a keyword and never part of an answer on their own."""

FILLERS = frozenset(
    """yes yeah yep oh wow hey hi hello thanks thank well really actually finally sure great good nice cool
    awesome amazing wonderful lovely glad happy know think guess mean say said says tell told get got gets
    getting go goes going went gone make made makes come came take took thing things lot bit way kind sort end
    ended day days time today lately recently still always now even like love loved enjoy enjoyed want wanted
    try tried start started keep kept let lets maybe quite pretty back around course absolutely definitely
    totally sounds sound look looks called named name names turned settled picked chose new one ones something
    anything everything nothing someone nobody somebody everybody everyone people every evening evenings
    morning mornings week weeks weekend month year years yesterday tomorrow tonight first next last ago""".split()  # noqa: SIM905
)
"""Frequent words of talk that carry no answer on their own."""

_IRREGULAR_VERBS = """buy bought|go went gone goes|make made|take took taken|give gave given|find found|win won
    write wrote written|sell sold|choose chose chosen|begin began begun|teach taught|lead led
    grow grew grown|build built|draw drew drawn|sing sang sung|eat ate eaten|keep kept|tell told|meet met
    run ran running|swim swam swum|ride rode ridden|leave left|lose lost|see saw seen|bring brought
    catch caught|sew sewn|break broke broken|wear wore worn|speak spoke spoken|drive drove driven
    fly flew flown|child children|get got getting gotten"""
_IRREGULAR = {form: line.split()[0] for line in _IRREGULAR_VERBS.replace("\n", "|").split("|") for form in line.split()}
_SUFFIXES = ("ations", "ation", "ingly", "ings", "ing", "edly", "ies", "ied", "ions", "ion", "ed", "es", "ly", "s")


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A crude common prefix of a word's forms: lower case, suffix cut, never below three letters.

    Unlike Porter's, the stem is always a prefix of the regular forms, so it can be searched for as it is.
    """
    word = word.lower().replace("’", "'").removesuffix("'s")
    if word in _IRREGULAR:
        word = _IRREGULAR[word]
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3 and not (suffix == "s" and word.endswith("ss")):
            word = word.removesuffix(suffix)
            break
    else:
        suffix = ""
    if word.endswith(("er", "or")) and not word.endswith("eer") and len(word) >= 6:
        word = word[:-2]  # the doer and the deed: founder, founded
    if suffix in ("ing", "ed") and len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]  # planning -> plann -> plan
    return word[:-1] if len(word) > 3 and word[-1] in "ey" else word


def search_roots(word: str) -> list[str]:
    """What a search for all forms of a word looks for: its stem, and the irregular forms of its verb."""
    root = stem(word)
    return [root, *(form for form, base in _IRREGULAR.items() if stem(base) == root and not form.startswith(root))]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with its words; `spans` are character positions, all tuples have one entry a word."""

    text: str
    words: tuple[str, ...]
    lowers: tuple[str, ...]
    stems: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    content: frozenset[str]
    asks: bool

    def slice(self, first: int, last: int) -> str:
        """The text from word `first` to word `last`, both included."""
        return self.text[self.spans[first][0] : self.spans[last][1]]


@lru_cache(maxsize=65536)
def parse(text: str) -> Sentence:
    """A sentence's words, stems and content stems (function words left out)."""
    matches = list(WORD.finditer(text))
    words = tuple(match.group() for match in matches)
    lowers = tuple(word.lower() for word in words)
    stems = tuple(stem(word) for word in words)
    content = frozenset(
        s for s, low in zip(stems, lowers, strict=True) if low not in FUNCTION_WORDS and (len(low) > 1 or low.isdigit())
    )
    spans = tuple(match.span() for match in matches)
    return Sentence(text, words, lowers, stems, spans, content, text.rstrip().endswith("?"))


_BREAK = re.compile(r"(?<=[.!?])(?<!\bDr\.)(?<!\bMr\.)(?<!\bSt\.)(?<!\bMrs\.)(?<!\b[A-Z]\.)\s+(?=[\"'“(A-Z0-9])")


@lru_cache(maxsize=32768)
def sentences(text: str) -> tuple[Sentence, ...]:
    """A text cut into sentences."""
    return tuple(parse(part) for part in _BREAK.split(text) if part.strip())


@lru_cache(maxsize=65536)
def proper_names(text: str) -> tuple[tuple[int, int], ...]:
    """Runs of capitalised words as (first word, last word), small joining words inside allowed.

    A capitalised word that opens the sentence counts only if it isn't a common word.
    """
    sentence = parse(text)
    runs: list[tuple[int, int]] = []
    start = None
    last = -1
    for index, word in enumerate(sentence.words):
        common = sentence.lowers[index] in FUNCTION_WORDS or sentence.lowers[index] in FILLERS
        capital = word[0].isupper() and not (common and (index == 0 or word in ("I", "I'm")))
        if capital and common and start is None:
            capital = False
        if start is not None and (not capital or _gap(sentence, last, index)):
            joins = sentence.lowers[index] in ("of", "the", "and", "de", "la") and not _gap(sentence, last, index)
            if joins and index + 1 < len(sentence.words) and _opens_name(sentence, index):
                continue
            runs.append((start, last))
            start = None
        if capital:
            start = index if start is None else start
            last = index
    if start is not None:
        runs.append((start, last))
    return tuple(runs)


def _gap(sentence: Sentence, last: int, index: int) -> bool:
    """Whether more than blanks, joining words or a full stop of an initial stand between two words."""
    between = sentence.text[sentence.spans[last][1] : sentence.spans[index][0]]
    stop = "." in between and len(sentence.words[last]) > 2
    return stop or any(mark in between for mark in ',;:()"“”?!—')


def _opens_name(sentence: Sentence, index: int) -> bool:
    """Whether the joining word at `index` leads on to a capitalised word ("of the" included; "and" does not join)."""
    if sentence.lowers[index] == "and":
        return False
    after = sentence.words[index + 1]
    if after[0].isupper():
        return True
    two_on = sentence.words[index + 2] if index + 2 < len(sentence.words) else "-"
    return sentence.lowers[index + 1] == "the" and two_on[0].isupper()
