// Ask: "/" leads to the question from anywhere on the page.
"use strict";

document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || window.typing(event)) return;
    event.preventDefault();
    document.querySelector("[data-focus]").focus();
});
