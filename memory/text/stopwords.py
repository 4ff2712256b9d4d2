"""Words that carry a sentence and not its matter: English and German function words and question
words.

A short list on purpose: `not`, `no`, `never`, `kein` and `nicht` are matter. Knows nothing about
who leaves them out.
"""

from __future__ import annotations

_ENGLISH = """
a an the this that these those there here it its i im ive me my we our us you your yours he him his
she her hers they them their who whom whose which what when where why how is am are was were be been
being do does did done doing have has had having will would shall should can could may might must
let lets and or but if then than so as of at by for with about into to from in on out over under
again just also very too some any all both each such own same other please thanks thank ok okay yes
yeah hey hi hello isnt arent wasnt whats thats youre theyre
"""
_GERMAN = """
der die das den dem des ein eine einen einem einer eines und oder aber wenn dann als so wie was wer
wen wem wann wo warum wieso weshalb welche welcher welches ich du er sie es wir ihr mich dich sich
uns euch mein dein sein unser ist bin bist sind seid war waren wird werden wurde wurden hat habe
haben hatte kann kannst konnte soll sollen sollte muss mussen darf mit von zu zum zur auf aus bei
nach vor fur im in am an um uber unter durch auch noch schon nur mal bitte danke ja dass ob hier da
denn doch
"""

#: Lower case, accents folded, apostrophes taken out: as `memory.text.words` makes them.
ENGLISH = frozenset(_ENGLISH.split())
GERMAN = frozenset(_GERMAN.split())
STOP_WORDS = ENGLISH | GERMAN

_QUESTIONS = """
whose whatever whichever whenever wherever anything anyone anybody something someone wohin woher
womit wofur wodurch woran worauf worin wovon wozu wessen wieviel wieviele
"""

#: German function words that are matter in an English question: a bin folder, the MIT license, ES.
TWO_TONGUED = frozenset("bin den des die es hat ist mit war".split())  # noqa: SIM905
#: Words that ask for something and stand in no answer for it.
# Why apart: keys of near-duplicates and the gates are set against the other list; these only a
# query leaves out.
QUESTION_WORDS = frozenset(_QUESTIONS.split())
