"use strict";
// What pages do beyond links and forms: parts that refresh, logs that go on live, and counting what is chosen.
// Each page works without it. Whatever comes from the server is put into the page as text, never as markup.

(() => {
  const MOST_LINES = 2000;

  // ── parts that refresh: htmx gets them, when nobody is in the middle of something there ──

  const busy = (part) =>
    document.hidden ||
    part.querySelector("input:checked, details[open]") !== null ||
    (part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea")) ||
    !(document.getSelection()?.isCollapsed ?? true);

  setInterval(() => {
    if (!window.htmx) return;
    for (const part of document.querySelectorAll("[data-refresh]")) {
      if (!busy(part)) part.dispatchEvent(new CustomEvent("refresh"));
    }
  }, 3000);

  // ── jobs that are chosen ──

  const tell = () => {
    const told = document.querySelector("[data-chosen]");
    if (!told) return;
    const number = document.querySelectorAll("input[name=job]:checked").length;
    told.textContent = number ? `${number} chosen` : "Choose jobs to stop them, run them again or delete them.";
    for (const button of told.parentElement.querySelectorAll("button")) button.disabled = number === 0;
  };
  document.addEventListener("change", tell);
  document.addEventListener("htmx:after:swap", tell);
  tell();

  // ── logs that go on live ──

  const log = document.querySelector("[data-live]");
  if (!log || !window.EventSource) return;

  const told = document.querySelector("[data-told]");
  const say = (text) => {
    if (told.textContent !== text) told.textContent = text;
  };
  let following = true;
  let waiting = 0;

  const toEnd = () => {
    log.scrollTop = log.scrollHeight;
  };
  const state = () =>
    following ? "Live: new lines appear as they come." : `Paused while you read: ${waiting} new ${waiting === 1 ? "line" : "lines"} below.`;

  const follow = (whether) => {
    if (whether === following) return;
    following = whether;
    if (following) waiting = 0;
    say(state());
  };

  log.addEventListener("scroll", () => {
    follow(log.scrollHeight - log.scrollTop - log.clientHeight < 30);
  });
  // The browser's own scrolling may end where the end was when the key was pressed: above the lines that came since.
  log.addEventListener("keydown", (event) => {
    if (event.key !== "End" || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    toEnd();
    follow(true);
  });

  const made = (name, text) => {
    const element = document.createElement(name);
    element.textContent = text;
    return element;
  };

  const line = ([number, when, level, word, message]) => {
    const item = document.createElement("li");
    item.id = `l${number}`;
    item.value = number;
    item.className = `l${Number(level)}`;
    item.append(made("time", when), " ", made("b", word), " ", made("span", message));
    return item;
  };

  const source = new EventSource(log.dataset.live);
  source.addEventListener("open", () => say(state()));
  source.addEventListener("lines", (event) => {
    const { leftOut, lines } = JSON.parse(event.data);
    const added = document.createDocumentFragment();
    if (leftOut) {
      const note = made("li", `${leftOut} ${leftOut === 1 ? "line" : "lines"} came too fast to be shown here.`);
      note.className = "gap";
      added.append(note);
    }
    for (const each of lines) added.append(line(each));
    log.append(added);
    // What is read stays; what is far above goes.
    const most = following ? MOST_LINES : 5 * MOST_LINES;
    while (log.children.length > most) log.firstElementChild.remove();
    if (following) toEnd();
    else waiting += lines.length;
    say(state());
  });
  source.addEventListener("end", () => {
    source.close();
    say("The job has ended, and this is the end of its log.");
  });
  source.addEventListener("error", () => {
    say(source.readyState === EventSource.CLOSED ? "Not live any more. Reload the page." : "Connecting again…");
  });
  window.addEventListener("pagehide", () => source.close());
  toEnd();
})();
