"""The corpus' memory: near-misses, and what its notes are about asked for in other words.

The corpus itself is no part of this repository: its notes are named here by an address, a symbol
or a name that stands in them, and described in words of our own.
"""

from __future__ import annotations

from itertools import product

from tests.recall.prompts import PROMPTS, Prompt, drawn, halved
from tests.recall.prompts.demo import NEAR_MISSES as OF_THE_DEMO
from tests.recall.prompts.demo import SHARES
from tests.recall.prompts.everyday import everyday
from tests.recall.prompts.general import general
from tests.recall.prompts.logs import logs
from tests.recall.prompts.tongues import tongues

#: How a saved page is asked for, on topic and off.
FRAMES = (
    "Where did I save the page about {what}?",
    "Find me the link on {what} again",
    "Did I keep anything about {what}?",
    "What was the address of {what}?",
)

#: Pages, places and symbols that nobody saved.
NOT_SAVED = """\
growing tomatoes on a balcony
the history of the Ottoman railways
repairing a bicycle chain
the Haskell type classes
a podcast with a retired astronaut
our trip to Portugal
the recipe for sourdough bread
kernel tuning for network cards on FreeBSD
a comic about a lawyer who is a vampire
choosing a mattress
the Rust borrow checker
a museum of lighthouses in Ireland
how vaccines are tested
the tango album with the blue cover
self-hosting a mail server with Postfix""".splitlines()

#: Asked about the coding work and never settled in it.
NEAR_MISSES = """\
Which database does AgentSession keep its users in?
What is the maximum size of an attachment in the session picker?
How does the terminal UI draw charts with braille characters?
Which OAuth scopes does the coding agent ask GitHub for?
Where are the translations of the coding agent's help text?
How many tokens a day may the coding agent use for one customer?
Who pays for the domain of the coding agent's website?
Does the agent's print mode support colour blind palettes?
Which port does the RPC mode listen on for browsers?
How is the release of the coding agent signed for Windows?
When did we decide to drop support for Node 16 in the agent?
Which vector index does the agent session use for search?
How do I write a skill that calls a paid weather service?
What does the skill for deploying to Heroku do?
Which albums of Miles Davis have I rated below five?
Who directed the film that we saw in Lisbon?
How much did the flights to Kyoto cost?
What did I think of the restaurant near the Fushimi shrine?
Which board game did we play at New Year with the neighbours?
How many eggs does the lemon meringue pie need?
Which of my bookmarks are about quantum computing?
What did Alice write about the invoice in March?""".splitlines()

#: A string that stands in a right note | what the note is about | the same in other words.
SAVED = """\
export-firefox-bookmarks | getting bookmarks out of Firefox | a backup of my Firefox bookmarks
Testing-Your-Privates | testing private methods in PHP | Sebastian Bergmann on private methods
aa753582 | the file format of Netscape bookmarks | the format that Internet Explorer favourites use
fontfamily.io | the fonts that are installed by default | tables of local fonts
Mine-Turtle | a turtle folded from paper | the papercraft turtle
kafene/netscape-bookmark-parser | a PHP parser for bookmark files | Netscape bookmarks in PHP
lua.org/pil | learning Lua | the book on programming in Lua
phpsecurity.readthedocs.io | PHP security for survivors | a guide to securing PHP
one-code-review-too-many | a comic about code reviews | the CommitStrip with the review
how-to-run-a-meetup | organising meetups without burning out | running a meetup beside a life
this-teapot | the teapot of computer graphics | the teapot that made computer graphics history
wincompose | a compose key on Windows | typing accents on Windows with a compose key
hginit.com | an introduction to Mercurial | Joel Spolsky's Mercurial tutorial
pony-mode | editing Django in Emacs | the Emacs mode for Django
Purity.html | the purity test for sysadmins | a test of how pure a sysadmin is
xkcd.com/1332 | the xkcd on slippery slopes | that slippery slope comic
pig-riding | riding a pig in Minecraft during a thunderstorm | Minecraft pigs in a storm
smart-questions | asking smart questions | how to ask questions the right way
HeroicProgramming | heroes among programmers | heroic programming
Chocolate | chocolate and Nobel prizes | chocolate that makes Nobel laureates
statisticsdonewrong | mistakes in statistics | how statistics is done wrong
joshmillard.com/garkov | Garfield made by Markov chains | Garkov
prism-break | escaping global surveillance | opting out of PRISM
spikedmath.com/570 | the fractal flowchart | a flowchart comic about maths
regexcrossword | crosswords with regular expressions | the regex puzzle
windows93 | Windows 93 | the joke operating system Windows93
elves | the timeline of Tolkien's elves | elves in Tolkien's works over time
jabber.org | the XMPP messaging service | Jabber
cozy.io | Cozy, the simple personal cloud | cozy
framasoft | Framasoft | the portal of Framasoft
ArnoldC | the programming language of Arnold Schwarzenegger | ArnoldC
kernel.org | the archives of the Linux kernel | downloading the Linux kernel
openclassrooms | open online courses for all | MOOCs at OpenClassrooms
bogosort | sorting algorithms worse than bogosort | the worst sorting algorithm
coursera | Coursera | the Coursera courses
checkio | CheckiO | the CheckiO coding game
shaarli/Shaarli | a bookmarking service without a database | Shaarli on GitHub
tox.readthedocs | the tox automation project | documentation of tox
sphinx-doc | the Sphinx documentation | the overview of Sphinx
php-fig | the PHP standards recommendations | PHP-FIG and the PSR documents
249664 | testing protected methods with PHPUnit | PHPUnit and protected methods
owncloud.org | ownCloud | the ownCloud site
fiftyshades | a generator of Fifty Shades parodies | the Fifty Shades text generator
kittenstorage | kittens as a Django storage | the Django storage engine with kitten images
mkzombie | making zombie processes in C | Brendan Gregg's mkzombie
MSPaintAlbumCovers | album covers drawn in MS Paint | records recreated with Paint
developerexcuses | excuses for lazy coders | developer excuses
better-git-log | a nicer git log | prettier output of git log
KExLCJAuTXA | Jojo Mayer's TEDx talk | the distance between 0 and 1
line-endings | dealing with line endings on GitHub | git and line endings
gallifreyan | writing Gallifreyan | the nine steps to Gallifreyan
phpsadness | the sad sides of PHP | PHP sadness
css3dclouds | clouds in 3D with CSS | the CSS clouds demo
lmgtfy | googling for others | the page that googles that for you
matplotlib | plots in the style of xkcd | xkcd plots with matplotlib
Authentication_Cheat_Sheet | the OWASP cheat sheet on authentication | OWASP authentication advice
fish-pirates | the hunt for pirates who steal fish | the rogue fishing vessel
national-cat-day | the comic about cats that never works | It never works with cats""".splitlines()

#: A string that stands in a right note | a whole question to it.
RECORDED = """\
until mixture resembles crumbs | How do I work the butter into the dough of the tart?
until mixture resembles crumbs | What should butter and flour look like before I stop mixing?
ball of dough in the freezer | Can I freeze half of the crust of the tart?
tart pan throughout | When may I take the tart out of its pan?
tart pan throughout | How long must the nectarine tart cool before I remove it?
until light golden | How many minutes more should the crust bake until it is golden?
texture of the skin | Can I take peaches instead of nectarines for the tart?
texture of the skin | Does the nectarine recipe work with pears?
favorite summer dessert | Which of my mother's recipes is my favourite in summer?
pure nostalgia | Why do I like my mom's tart so much?
combinatory uniqueness | Which evergreen note did I write about creativity?
succinct and memorable | What should the title of an evergreen note be like?
composable | What is an evergreen note?
testable core | What becomes the testable core of all modes?
e2e tests | Which kind of tests do we want for AgentSession?
e2e tests | Write unit tests with mocks for AgentSession
AppMessage[] | What type do the messages of AgentSession have?
AppMessage[] | Does AgentSession.messages return Message[] or AppMessage[]?
declaration merging | How does BashExecutionMessage get into AppMessage?
setup their listener once | Should unsubscribing clear the listeners of an agent session?
setup their listener once | How often should a user of agentSession set up a listener?
fileCommands | Where are the fileCommands loaded and stored?
fileCommands | Are slash commands from files read again by AgentSession?
factory function | What does showSelector take, and when is done called?
session-picker.ts | Into which file does selectSession belong?
session-picker.ts | Where should the session picker of the CLI live?
immediately follow | May a user message stand between tool_use and tool_result?
immediately follow | Why does the Anthropic API reject my tool_result?
trigger an agent response | What is queueMessage meant for?
trigger an agent response | Should bash output be queued with queueMessage?
pendingMessagesContainer | What happens with a !command while the agent is streaming?
pendingMessagesContainer | When do pending bash messages move to the chat?
flushPendingBash | Which function moves pending bash components to the chat?
out-of-control.jpg | Which book by Kevin Kelly do I have, and how many pages has it?
Out of Control | What was discussed in the meeting with Steph Ango about emergence?
Paul Chambers | Which jazz album of Paul Chambers did I rate?
Ridley Scott | Which film by Ridley Scott with Harrison Ford have I seen?
Nintendo Switch | Which open world game on the Nintendo Switch did I play last?
34.9689499 | What are the coordinates of the shrine in Kyoto?
"35.021041" | Where in Japan does the city of Kyoto lie, which coordinates?
"[[Trips]]" | When did the trip to Japan start and end?
minimal.guide | What is still to do for the Minimal theme of Obsidian?
minimal.guide | Does the Minimal theme support e-ink?
cost per use | Where did I analyse the cost per use of products?
episode: "145" | Which episode of Well Made had Kevin Kelly as guest?
twitter: kepano | What is Steph Ango's website and twitter name?
https://obsidian.md/ | What is the url of the company Obsidian?
bad--name | Which skill has consecutive hyphens in its name?
disable-model-invocation | Which skill can only be invoked by hand and not by the model?
Invalid_Name | Which skill's name has invalid characters such as an underscore?
invalid-yaml | Which skill has an unclosed bracket in its front matter?
sixty-four-character | How long may the name of a skill be?
missing-description | Is there a skill without a description?
multiline-description | Which skill tests descriptions of several lines?
different-name | Which skill is named differently from its directory?
child-skill | Is there a skill nested in a subdirectory?
No Frontmatter | Which skill has no YAML front matter at all?
Root skill should win | Which skill should win, the one in the root or the nested one?
unknown-field | Which skill has a front matter field that the standard does not know?
valid-skill | Show me an example of a skill that follows the Agent Skills standard
Super-secret | What did I save under secret stuff that nobody should know about?
multi.li.ne | Which bookmark has nested lists in its description?
phpinfo | Which bookmark holds code in PHP and Python as Markdown?
Alice | When did Alice and Bob write to each other on WhatsApp?""".splitlines()


def off_topic() -> list[Prompt]:
    """Two hundred prompts that nothing in the corpus' memory helps with."""
    frames = [frame.format(what=what) for what, frame in product(NOT_SAVED, FRAMES[:2])]
    misses = [
        *drawn(NEAR_MISSES, 18, salt="of the corpus"),
        *drawn(frames, 12, salt="not saved"),
        *drawn(OF_THE_DEMO, 10, salt="of the demo"),
    ]
    pools = {
        "general": general(),
        "everyday": everyday(),
        "tongue": tongues(),
        "log": logs(),
        "near miss": misses,
    }
    return halved(
        Prompt(line, kind)
        for kind, lines in pools.items()
        for line in drawn(lines, SHARES[kind], salt=f"corpus {kind}")
    )


def on_topic() -> list[Prompt]:
    """Every recorded question, then both descriptions of every saved page in a frame in turn."""
    asked = [
        Prompt(question, "recorded", holds=(holds,))
        for holds, question in (line.split(" | ") for line in RECORDED)
    ]
    saved = [
        Prompt(FRAMES[(place + way) % len(FRAMES)].format(what=what), "saved", holds=(holds,))
        for place, (holds, *described) in enumerate(line.split(" | ") for line in SAVED)
        for way, what in enumerate(described)
    ]
    again = [Prompt(f"Please look it up: {one.text}", "recorded", holds=one.holds) for one in asked]
    return halved([*asked, *saved, *again][:PROMPTS])
