// The feed by keys: 1 to 4 rate, n draws, p pins, space shows the evidence. All of it works without.
"use strict";

document.addEventListener("keydown", (event) => {
    if (window.typing(event) || event.repeat) return;
    const card = document.getElementById("card");
    if (!card) return;
    if (event.key === " ") {
        const evidence = card.querySelector("[data-evidence]");
        // Space presses what is in focus; it is ours when nothing is.
        if (!evidence || event.target.closest("button, a, summary")) return;
        event.preventDefault();
        evidence.open = !evidence.open;
        return;
    }
    const button = /^[1-4np]$/.test(event.key) && card.querySelector(`[data-key="${event.key}"]`);
    if (!button) return;
    event.preventDefault();
    button.click();
});

// Whoever reads by ear hears the new card; whoever presses keys goes on from it.
document.addEventListener("htmx:afterSettle", (event) => {
    if (event.detail.target.id !== "card") return;
    document.getElementById("card-title")?.focus({ preventScroll: true });
});
