// What a page cannot do by itself: the slider, a file that is dropped, the keys, and looking at a job again.
// Everything else is plain HTML and works without this file. Nothing is fetched from anywhere else.
"use strict";

const base = document.getElementById("main").dataset.base;

function slider() {
  const input = document.getElementById("epsilon");
  if (!input) return;
  const show = () => {
    for (const one of document.querySelectorAll("[data-at]")) {
      const on = one.dataset.at === input.value;
      if (one.classList.contains("buys")) {
        one.hidden = !on;
        if (on) {
          document.getElementById("shown").textContent = one.dataset.epsilon;
          input.setAttribute("aria-valuetext", "epsilon " + one.dataset.epsilon);
        }
      } else {
        one.classList.toggle("on", on);
      }
    }
  };
  input.addEventListener("input", show);
  show();
}

function types() {
  const select = document.getElementById("type");
  if (!select) return;
  select.addEventListener("change", () => {
    location.assign(base + "/" + select.dataset.at + "?type=" + encodeURIComponent(select.value));
  });
}

// Leave a form half filled in, and the browser asks.
function unsaved() {
  const form = document.getElementById("declaration");
  if (!form) return;
  let changed = false;
  form.addEventListener("input", () => { changed = true; });
  form.addEventListener("submit", () => { changed = false; });
  document.getElementById("type")?.addEventListener("change", () => { changed = false; });
  addEventListener("beforeunload", (event) => { if (changed) event.preventDefault(); });
}

// Each form is sent once: a second click finds the button disabled.
function once() {
  for (const form of document.querySelectorAll("form")) {
    form.addEventListener("submit", () => {
      setTimeout(() => form.querySelectorAll("button").forEach((one) => { one.disabled = true; }), 0);
    });
  }
  addEventListener("pageshow", () => {
    document.querySelectorAll("button").forEach((one) => { one.disabled = one.hasAttribute("data-off"); });
  });
}

// The arrow keys go through the columns, unless a field has the focus.
function keys() {
  const list = document.getElementById("columns");
  if (!list) return;
  const links = [...list.querySelectorAll("a")];
  const at = links.findIndex((one) => one.hasAttribute("aria-current"));
  links[at]?.scrollIntoView({block: "nearest"});
  addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (/^(INPUT|SELECT|TEXTAREA|SUMMARY)$/.test(document.activeElement.tagName)) return;
    const step = {ArrowDown: 1, j: 1, ArrowUp: -1, k: -1}[event.key];
    const link = step && links[at + step];
    if (link) {
      event.preventDefault();
      link.click();
    }
  });
}

function drop() {
  const area = document.getElementById("drop");
  if (!area) return;
  const said = document.getElementById("sending");
  const bar = document.getElementById("sent");
  const send = (file) => {
    if (!file) return;
    const request = new XMLHttpRequest();
    request.open("POST", base + "/upload");
    request.setRequestHeader("X-Name", encodeURIComponent(file.name));
    request.setRequestHeader("X-Size", String(file.size));
    request.upload.onprogress = (event) => { bar.value = event.loaded / event.total; };
    request.onload = () => {
      bar.hidden = true;
      if (request.status === 200) location.assign(request.responseText);
      else said.textContent = request.responseText;
    };
    request.onerror = () => { bar.hidden = true; said.textContent = "The program does not answer; is it still running?"; };
    said.textContent = "Copying " + file.name + " …";
    bar.hidden = false;
    request.send(file);
  };
  document.getElementById("file").addEventListener("change", (event) => send(event.target.files[0]));
  for (const kind of ["dragenter", "dragover"]) {
    area.addEventListener(kind, (event) => { event.preventDefault(); area.classList.add("over"); });
  }
  area.addEventListener("dragleave", () => area.classList.remove("over"));
  area.addEventListener("drop", (event) => {
    event.preventDefault();
    area.classList.remove("over");
    send(event.dataTransfer.files[0]);
  });
}

function job() {
  const place = document.getElementById("progress");
  if (!place || place.dataset.state !== "running") return;
  const look = async () => {
    try {
      const answer = await fetch(base + "/job/state");
      if (answer.ok) {
        const focused = document.activeElement.closest("#progress form") !== null;
        place.innerHTML = await answer.text();
        once();
        // Read aloud once for each step, not with every look.
        const step = [...place.querySelectorAll(".steps li")].pop()?.textContent ?? "";
        const said = document.getElementById("step");
        if (said.textContent !== step) said.textContent = step;
        if (focused) place.querySelector("button")?.focus();
        if (answer.headers.get("X-State") !== "running") {
          const then = document.getElementById("then");
          if (then) location.assign(then.href);
          return;
        }
      }
    } catch {
      place.textContent = "The program does not answer; is it still running? What was written is whole.";
      return;
    }
    setTimeout(look, 400);
  };
  setTimeout(look, 300);
}

slider(); types(); unsaved(); once(); keys(); drop(); job();
