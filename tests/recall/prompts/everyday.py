"""Off-topic prompts in the words of this work: what agents are asked every day, about no fact.

Database, deploy, test, port, migration, cache: the vocabulary of the notes, and none of what they
state. Whoever is asked one of these needs the code, not the memory.
"""

from __future__ import annotations

from itertools import product

#: Written by hand.
REQUESTS = """\
Fix the failing test in the login module
Add a new column to the users table and write the migration
Rename this function and update all call sites
Why is the build so slow on my laptop today?
Update the README with installation instructions for Windows
The CI pipeline fails with exit code 137, what is wrong?
How do I revert the last commit without losing changes?
Add logging to the worker so that we can debug timeouts
Change the colour of the submit button to green
Create a Dockerfile for this project with multi-stage build
Upgrade the dependencies and fix what breaks
Add type hints to all functions in this file
How do I run only one test file with pytest?
Write a script that renames all files in a folder
Add a retry with backoff to the HTTP client
Parse the CSV file and compute the average per user
Optimise this SQL query, it takes ten seconds
Write documentation for the new endpoint
Cache the result of this function for five minutes
Mock the database in the integration tests
Print the stack trace when an exception happens
Use a connection pool instead of single connections
How do I center a div horizontally with flexbox?
Implement quicksort in Rust with generics and add unit tests
Refactor this Java class to use the visitor pattern
Set up a Kubernetes ingress with cert-manager on bare metal
What is the difference between a left join and an inner join?
Explain what this regular expression matches: ^[a-z]+\\d{2,}$
Write a GitHub workflow that runs the tests on three platforms
Turn these callbacks into async functions with await
Move the helper functions of this file into their own module
Which HTTP status should an endpoint return for a missing field?
Add pagination to the list endpoint, fifty rows a page
Show me how to profile memory in a long running process
Generate fake users and orders for the performance test
Why does git say that my branch has diverged?
Split this pull request into two smaller ones please
Give the modal dialog a close button and trap the focus
The docker image is two gigabytes, make it smaller
Write a bash loop that pings a host every ten seconds
Replace the deprecated API calls and keep the behaviour
Is it better to use an enum or a string for the status column?
Make the table sortable by clicking on a column header
Bump the version to the next minor and write the changelog entry
Remove dead code that no test and no caller reaches
Add an index for the slow query and explain the plan
Write a property based test for the date parser
How can I find out which process listens on port 8080?
Validate the e-mail field of the sign-up form on the client
Convert this class component into a function component with hooks
Add a health check route that returns the version as JSON
Why is my environment variable empty inside the container?
Draft a design for rate limiting requests by API key
Resolve the merge conflicts in the package lock file
Translate all labels of the settings page into French
Explain the error: cannot read properties of undefined
Set up prettier and a pre-commit hook for this folder
Write a cron job that deletes log files older than a month
Give me a regular expression for an ISO date with a time
How would you structure the folders of a new Go service?""".splitlines()

DOINGS = (
    "Write unit tests for the {part} and cover the edge cases",
    "Please review the {part} and list what you would change",
    "The {part} throws an exception when the input is empty, fix it",
    "Add a command line flag that turns the {part} off",
    "Make the {part} twice as fast without changing its results",
    "Document how the {part} works in three short paragraphs",
    "Extract the {part} into a package of its own",
)
PARTS = (
    "search form",
    "upload handler",
    "mail template",
    "session middleware",
    "image resizer",
    "permission check",
    "query builder",
    "date formatter",
    "password reset page",
    "background queue",
    "feature flag loader",
    "shopping cart",
)


def everyday() -> list[str]:
    """Requests of people first, then every doing on every part."""
    return [
        *REQUESTS,
        *(doing.format(part=part) for doing, part in product(DOINGS, PARTS)),
    ]
