// The queue and the list of holds by keyboard. All of it is links and forms, which work without.
"use strict";

const find = (selector) => document.querySelector(selector);
const rows = () => [...document.querySelectorAll("#many tr[data-row]")];
const here = () => rows().findIndex((row) => row.classList.contains("here"));

const show = (dialog) => { if (!dialog.open) dialog.showModal(); };

// The list: which row the keys mean.
const walk = (step) => {
    const all = rows();
    const place = Math.min(Math.max(here() + step, 0), all.length - 1);
    all.forEach((row, number) => row.classList.toggle("here", number === place));
    all[place].querySelector("[data-open]").focus();
};

const select = () => {
    const row = rows()[here()];
    if (row) row.querySelector("[data-select]")?.click();
};

const count = () => {
    const place = find("[data-count]");
    const chosen = document.querySelectorAll("[data-select]:checked").length;
    if (place) place.textContent = chosen ? `${chosen} selected` : "";
    return chosen;
};

const edit = (details) => {
    details.open = true;
    details.querySelector("input[name=title]").focus();
};

const press = (key) => {
    if (key === "?") return show(find("#keys"));
    const search = find("input[type=search][name=q]");
    if (key === "/" && search) return search.focus();
    const listed = rows().length > 0;
    if (listed && (key === "j" || key === "k")) return walk(key === "j" ? 1 : -1);
    if (listed && key === "x") return select();
    if (listed && key === "o") return rows()[here()]?.querySelector("[data-open]").click();
    const meant = find(`[data-key~="${CSS.escape(key)}"]`);
    if (!meant) return undefined;
    if (meant.tagName === "DETAILS") return edit(meant);
    if (listed && meant.form && meant.form.id === "many" && !count()) return undefined;
    return meant.click();
};

const typing = (event) =>
    event.target instanceof Element &&
    event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");

// Why at the way down: the theme's search takes every key pressed on the page.
document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        const form = event.target instanceof Element && event.target.closest(".hold-edit form");
        if (form) form.requestSubmit();
        return;
    }
    if (event.key === "Escape") {
        if (typing(event)) event.target.blur();
        const open = find(".hold-edit[open]");
        if (open) open.open = false;
        return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || typing(event)) return;
    if (find("dialog[open]") || !"jkaruesxo/?".includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    press(event.key);
}, true);

document.addEventListener("click", (event) => {
    if (event.target.closest("[data-keys]")) show(find("#keys"));
});

document.addEventListener("change", (event) => {
    if (event.target.matches("[data-all]")) {
        document.querySelectorAll("[data-select]").forEach((box) => { box.checked = event.target.checked; });
    }
    if (event.target.matches("[data-all], [data-select]")) count();
});

// Whoever reads the page by ear or by keys goes on where the new card begins.
document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id !== "hold") return;
    const heading = find("#hold [data-focus]");
    if (!heading) return;
    heading.focus({ preventScroll: true });
    heading.scrollIntoView({ block: "nearest" });
});
