"use strict";
// Live logs, the count of selected jobs, missing images, and the next runs of a schedule. Refreshed parts: refresh.js.
// Each page works without this script. Data from the server is inserted as text, never as markup.

(() => {
  const MOST_LINES = 2000;

  // ── selected jobs ──

  const showChosen = () => {
    const status = document.querySelector("[data-chosen]");
    if (!status) return;
    const number = document.querySelectorAll("input[name=job]:checked").length;
    status.textContent = number ? `${number} chosen` : "Choose jobs to stop them, run them again, delete or compare them.";
    for (const button of status.parentElement.querySelectorAll("button")) button.disabled = number === 0;
  };
  document.addEventListener("change", showChosen);
  document.addEventListener("refreshed", showChosen);
  showChosen();

  // ── images of items ──

  // The server has sent none: the URL leads nowhere, or to what is no image. The event does not bubble.
  const hideBroken = (image) => {
    if (image instanceof HTMLImageElement && image.alt === "") image.hidden = true;
  };
  document.addEventListener("error", (event) => hideBroken(event.target), true);
  for (const image of document.images) if (image.complete && image.naturalWidth === 0) hideBroken(image);

  // ── the next runs of a schedule, while its cron expressions are written ──

  for (const element of document.querySelectorAll("[data-without-script]")) element.hidden = true;

  const crons = document.querySelector("[data-next]");
  const chooser = document.querySelector("select[data-schedule]");

  const showNext = ({ next, error }) => {
    document.querySelector("[data-next-error]").textContent = error || (next.length ? "Next runs (UTC):" : "It never runs.");
    const runs = document.querySelector("[data-next-runs]");
    runs.replaceChildren(
      ...next.map((text) => {
        const item = document.createElement("li");
        item.textContent = text;
        return item;
      }),
    );
  };

  // One input for each expression: the first one stays, with its label and what describes it.
  const setCrons = (values) => {
    const [first, ...others] = crons.querySelectorAll("input");
    for (const other of others) other.remove();
    values.forEach((value, place) => {
      const input = place ? first.cloneNode() : first;
      if (place) {
        input.id = `cron-${place + 1}`;
        input.required = false;
        input.setAttribute("aria-label", `Cron expression ${place + 1}`);
        crons.append(input);
      }
      input.value = value;
    });
  };

  let asked = 0;
  const askNext = async (query, use) => {
    const number = ++asked;
    try {
      const answer = await fetch(`${crons.dataset.next}?${new URLSearchParams(query)}`);
      if (!answer.ok) return;
      const found = await answer.json();
      // A later question may have been answered before.
      if (number !== asked) return;
      if (use && !found.error) setCrons(found.crons);
      showNext(found);
    } catch {
      document.querySelector("[data-next-error]").textContent = "The next runs cannot be shown: the server does not answer.";
    }
  };

  if (crons) {
    let timer;
    crons.addEventListener("input", () => {
      clearTimeout(timer);
      if (chooser) chooser.value = "";
      timer = setTimeout(() => askNext([...crons.querySelectorAll("input")].map((input) => ["cron", input.value])), 250);
    });
    for (const element of document.querySelectorAll("[data-schedule]")) {
      element.addEventListener("change", () => {
        const at = document.querySelector("input[data-schedule]").value;
        if (chooser.value) askNext([["schedule", chooser.value], ["at", at]], true);
      });
    }
    if (document.querySelector("[data-next-runs] li")) document.querySelector("[data-next-error]").textContent = "Next runs (UTC):";
  }

  // ── live logs ──

  const log = document.querySelector("[data-live]");
  if (!log || !window.EventSource) return;

  const status = document.querySelector("[data-live-status]");
  const showState = (text) => {
    if (status.textContent !== text) status.textContent = text;
  };
  let following = true;
  let waiting = 0;

  const toEnd = () => {
    log.scrollTop = log.scrollHeight;
  };
  const state = () =>
    following ? "Live: new lines appear as they arrive." : `Paused while you read: ${waiting} new ${waiting === 1 ? "line" : "lines"} below.`;

  const follow = (whether) => {
    if (whether === following) return;
    following = whether;
    if (following) waiting = 0;
    showState(state());
  };

  log.addEventListener("scroll", () => {
    follow(log.scrollHeight - log.scrollTop - log.clientHeight < 30);
  });
  // The browser scrolls to the end as it was when the key was pressed, above lines that arrived since.
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
  source.addEventListener("open", () => showState(state()));
  source.addEventListener("lines", (event) => {
    const { leftOut, lines } = JSON.parse(event.data);
    const added = document.createDocumentFragment();
    if (leftOut) {
      const note = made("li", `${leftOut} ${leftOut === 1 ? "line" : "lines"} skipped: they arrived too fast to show.`);
      note.className = "gap";
      added.append(note);
    }
    for (const each of lines) added.append(line(each));
    log.append(added);
    // A reader keeps more lines than a follower; older lines are removed.
    const most = following ? MOST_LINES : 5 * MOST_LINES;
    while (log.children.length > most) log.firstElementChild.remove();
    if (following) toEnd();
    else waiting += lines.length;
    showState(state());
  });
  source.addEventListener("end", () => {
    source.close();
    showState("The job has ended. This is the end of its log.");
  });
  source.addEventListener("error", () => {
    showState(source.readyState === EventSource.CLOSED ? "Not live. Reload the page to continue." : "Reconnecting…");
  });
  window.addEventListener("pagehide", () => source.close());
  toEnd();
})();
