// Opens and closes every look for a border at once. Without script each opens by itself.
"use strict";

const opener = document.querySelector("[data-open-checks]");
if (opener) {
    opener.hidden = !document.querySelector(".timeline .look details");
    opener.addEventListener("click", () => {
        const open = opener.getAttribute("aria-pressed") !== "true";
        for (const one of document.querySelectorAll(".timeline .look details")) one.open = open;
        opener.setAttribute("aria-pressed", String(open));
        opener.textContent = open ? "Hide the looks for a border" : "Show every look for a border";
    });
}
