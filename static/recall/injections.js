// Sliders of floors: a slider moves the number beside it, which is what the form sends. Without
// script there are the numbers and a button.
"use strict";

for (const slider of document.querySelectorAll("input[type=range][data-for]")) slider.hidden = false;

document.addEventListener("input", (event) => {
    const given = event.target;
    if (!(given instanceof HTMLInputElement)) return;
    if (given.matches("input[type=range][data-for]")) {
        document.getElementById(given.dataset.for).value = given.value;
    } else if (given.type === "number") {
        const slider = document.querySelector(`input[type=range][data-for="${given.id}"]`);
        if (slider && given.value !== "") slider.value = given.value;
    }
});
