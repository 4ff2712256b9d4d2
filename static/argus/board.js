// The board asks for itself again; not while nobody looks at it, nor while somebody is in it.
"use strict";

document.addEventListener("htmx:beforeRequest", (event) => {
    const board = event.target.closest && event.target.closest("#stages, #first");
    if (!board || event.target !== board) return;
    const busy = board.contains(document.activeElement) && board.id === "stages";
    if (document.hidden || busy) event.preventDefault();
});
