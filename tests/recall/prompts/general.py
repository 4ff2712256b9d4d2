"""Off-topic prompts about the world: nothing of them is work that anybody recorded."""

from __future__ import annotations

from itertools import product

#: Asked as a person asks them.
QUESTIONS = """\
What is the capital of Mongolia and how many people live there?
Write a haiku about autumn leaves falling in an old garden.
Explain the difference between TCP and UDP to a beginner.
Convert this temperature from Fahrenheit to Celsius please: 98.6
Recommend three novels about the first contact with another species.
What are good warm-up exercises before running a marathon?
How does photosynthesis convert sunlight into chemical energy?
Summarise the plot of Hamlet in two sentences for me.
Which visa does an Australian need to work in Canada?
Draw an ASCII art picture of a dog sleeping on a sofa.
Calculate the monthly payment of a mortgage of 300000 at 4 percent.
What is the best way to remove red wine from a carpet?
Why is the sky blue but the sunset red or orange?
Give me a recipe for lentil soup with coriander and lemon.
How long should I boil an egg so that the yolk stays soft?
Who painted the ceiling of the Sistine Chapel, and when?
Explain compound interest with a simple example and numbers.
What is the difference between a virus and a bacterium?
Suggest a name for a bakery that only sells rye bread.
How far away is the moon and how do we measure that?
Write a limerick about a cat that is afraid of cucumbers.
Which muscles does a deadlift train, and how do I avoid back pain?
Proofread this sentence: their going to the lake on sunday.
What should I pack for a week of hiking in Iceland in June?
How do vaccines train the immune system, in plain words?
Explain the offside rule in football to my grandmother.
Why do cats purr, and do big cats purr as well?
Write a polite letter that asks my landlord to fix the heating.
Plan a birthday party for a five year old with ten guests.
What is the time difference between Lisbon and Singapore?
How do I get rid of fruit flies in the kitchen?
Explain the prisoner's dilemma and one real example of it.
Which instruments make up a classical string quartet?
How many litres of water should an adult drink each day?
What does the phrase "to beg the question" really mean?
Compare nuclear fission and nuclear fusion in a small table.
Help me choose between a heat pump and a gas boiler for an old house.
How do tides work, and why are there two high tides a day?
Give me five ice-breaker questions for a wedding table.
What is the plural of octopus, and why do people argue about it?
How do I prune an apple tree in late winter?
Explain what inflation is to somebody who is twelve.
Which language family does Basque belong to?
Write the opening paragraph of a detective story set in Lima.
How does a sewing machine make a stitch with two threads?
What is a good beginner's opening for playing chess as black?""".splitlines()

ASKED = (
    "What is the {what} of {place}?",
    "Tell me something surprising about the {what} of {place}.",
    "How did the {what} of {place} change over the last century?",
)
WHATS = ("population", "national dish", "climate", "highest mountain", "railway network")
PLACES = ("Norway", "Paraguay", "Madagascar", "Scotland", "Vietnam", "Slovenia")


def general() -> list[str]:
    """Questions of people first, then what a table of places gives."""
    filled = (
        frame.format(what=what, place=place) for frame, what, place in product(ASKED, WHATS, PLACES)
    )
    return [*QUESTIONS, *filled]
