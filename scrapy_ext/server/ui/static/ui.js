"use strict";
// Live logs, the count of selected jobs, menus, missing images, and the next runs of a schedule. Refreshed parts: refresh.js.
// Each page works without this script. Data from the server is inserted as text, never as markup.

(() => {
  const MOST_LINES = 2000;

  // ── selected jobs ──

  const showChosen = () => {
    const status = document.querySelector("[data-chosen]");
    if (!status) return;
    const boxes = document.querySelectorAll("input[name=job]");
    const number = document.querySelectorAll("input[name=job]:checked").length;
    const every = document.querySelector("input[name=all]")?.checked;
    status.textContent = every
      ? "All that are found. You are asked first, with their number."
      : number
        ? `${number} chosen`
        : "Choose jobs to stop them, run them again, delete or compare them.";
    for (const button of status.parentElement.querySelectorAll("button")) button.disabled = number === 0 && !every;
    const page = document.querySelector("[data-choose-page]");
    page.checked = number === boxes.length;
    page.indeterminate = number > 0 && number < boxes.length;
  };
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-choose-page]")) {
      for (const box of document.querySelectorAll("input[name=job]")) box.checked = event.target.checked;
    }
    showChosen();
  });
  document.addEventListener("refreshed", showChosen);
  showChosen();

  // ── times: local, with UTC as the title ──

  const two = (number) => String(number).padStart(2, "0");
  const local = (time) =>
    `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ` +
    `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;

  // A time relative to now has UTC as its title already.
  const localize = (element) => {
    const time = new Date(element.dateTime);
    if (element.dataset.local === element.dateTime || Number.isNaN(time.getTime())) return;
    const utc = `${element.dateTime.replace("T", " ").replace("Z", "")} UTC`;
    if (element.title) element.title = `${local(time)}, ${utc}`;
    else {
      element.textContent = local(time);
      element.title = utc;
    }
    element.dataset.local = element.dateTime;
  };
  const localizeAll = () => {
    // The times of a log are short: a page has many.
    for (const time of document.querySelectorAll(".log time:not([datetime])")) time.dateTime = `${time.textContent.replace(" ", "T")}Z`;
    document.querySelectorAll("time[datetime]:not([data-beside])").forEach(localize);
  };
  document.addEventListener("refreshed", localizeAll);
  localizeAll();

  // ── menus ──

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });

  // ── local times beside those in UTC ──

  const clock = (options) => new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...options });
  const [atHour, onDay] = [clock(), clock({ weekday: "short" })];
  const addLocal = (root) => {
    for (const time of root.querySelectorAll("time[data-beside]")) {
      const when = new Date(time.dateTime);
      // Where the local time is UTC, there is nothing to add.
      if (Number.isNaN(when.getTime()) || when.getTimezoneOffset() === 0) continue;
      const text = `${(when.getDay() === when.getUTCDay() ? atHour : onDay).format(when)} local`;
      if (time.dataset.beside === "title") time.title = text;
      else {
        const local = document.createElement("span");
        local.className = "local";
        local.textContent = ` ${text}`;
        time.after(local);
      }
    }
  };
  addLocal(document);
  for (const element of document.querySelectorAll("[data-zone]")) {
    if (new Date().getTimezoneOffset() !== 0) element.textContent = `Point at a time for that of ${atHour.resolvedOptions().timeZone}.`;
  }

  // ── images of items ──

  // The server has sent none: the URL leads nowhere, or to what is no image. The event does not bubble.
  const hideBroken = (image) => {
    if (image instanceof HTMLImageElement && image.alt === "") image.hidden = true;
  };
  document.addEventListener("error", (event) => hideBroken(event.target), true);
  for (const image of document.images) if (image.complete && image.naturalWidth === 0) hideBroken(image);

  // ── the arguments of the spider that is chosen to run ──

  const run = document.querySelector("form[data-run]");
  if (run) {
    const known = () => run.elements.spider.value + "\n" + (run.elements.version ? run.elements.version.value : "");
    const names = () => [...document.querySelectorAll("#spiders option")].map((option) => option.value);
    let shown = known();
    const showArguments = async () => {
      const wanted = known();
      if (wanted === shown || !names().includes(run.elements.spider.value)) return;
      shown = wanted;
      const body = new URLSearchParams(new FormData(run));
      body.set("action", "show");
      const answer = await fetch(run.getAttribute("action"), { method: "POST", body });
      // Another spider may have been chosen meanwhile.
      if (!answer.ok || wanted !== known()) return;
      const found = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("spider-arguments");
      if (found) document.getElementById("spider-arguments").replaceWith(document.adoptNode(found));
    };
    run.elements.spider.addEventListener("input", showArguments);
    if (run.elements.version) run.elements.version.addEventListener("change", showArguments);
  }

  // ── the next runs of a schedule, while its cron expressions are written ──

  const showWithScript = () => {
    for (const element of document.querySelectorAll("[data-without-script]")) element.hidden = true;
    for (const element of document.querySelectorAll("[data-with-script]")) element.hidden = false;
  };
  document.addEventListener("refreshed", showWithScript);
  showWithScript();

  const crons = document.querySelector("[data-next]");
  const chooser = document.querySelector("select[data-schedule]");

  const showNext = ({ next, error }) => {
    document.querySelector("[data-next-error]").textContent = error || (next.length ? "Next runs (UTC):" : "It never runs.");
    const runs = document.querySelector("[data-next-runs]");
    runs.replaceChildren(
      ...next.map(({ time, text }) => {
        const item = document.createElement("li");
        const element = document.createElement("time");
        element.dateTime = time;
        element.dataset.beside = "";
        element.textContent = text;
        item.append(element);
        return item;
      }),
    );
    addLocal(runs);
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

  // ── whole tracebacks, shown in place of a link to their page ──

  document.addEventListener("click", async (event) => {
    const link = event.target instanceof Element && event.target.closest("a.whole");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    try {
      const answer = await fetch(link.href);
      const found = answer.ok && new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("line");
      if (!found) throw new Error(answer.statusText);
      const text = document.createElement("span");
      text.className = "unfolded";
      text.tabIndex = -1;
      text.textContent = found.textContent;
      link.replaceWith(text);
      text.focus({ preventScroll: true });
    } catch {
      location.assign(link.href);
    }
  });

  // ── values of charts, on hover, on focus and by arrow keys ──

  const placesOf = (chart) => [...chart.querySelectorAll(".values > *")];
  const showPlace = (chart, place) => {
    for (const each of chart.querySelectorAll(".now")) if (each !== place) each.classList.remove("now");
    place?.classList.add("now");
    chart.querySelector(".reading").textContent = place?.querySelector("title").textContent ?? "";
  };
  const showAt = (event) => {
    const chart = event.target instanceof Element && event.target.closest(".chart");
    if (!chart) return;
    const place = event.target.closest(".values > *");
    if (place || event.type === "pointerleave") showPlace(chart, place);
  };
  document.addEventListener("pointerover", showAt);
  document.addEventListener("focusin", showAt);
  document.addEventListener("pointerleave", showAt, true);
  document.addEventListener("keydown", (event) => {
    const chart = event.target instanceof SVGElement && event.target.matches("svg") && event.target.closest(".chart");
    if (!chart) return;
    const places = placesOf(chart);
    const now = places.findIndex((place) => place.classList.contains("now"));
    const next = { ArrowLeft: now < 0 ? places.length - 1 : now - 1, ArrowRight: now + 1, Home: 0, End: places.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    showPlace(chart, places[Math.min(Math.max(next, 0), places.length - 1)]);
  });

  // ── elements of fields in a screenshot ──

  const markBox = (event) => {
    const link = event.target instanceof Element && event.target.closest("a[data-box]");
    for (const each of document.querySelectorAll(".box.now")) each.classList.remove("now");
    const box = link && document.getElementById(link.dataset.box);
    if (!box) return;
    box.classList.add("now");
    // Only the part with the screenshot scrolls: the link stays under the pointer.
    const part = box.closest(".drawn");
    const [inner, outer] = [box.getBoundingClientRect(), part.getBoundingClientRect()];
    if (inner.top < outer.top || inner.bottom > outer.bottom) part.scrollTop += inner.top - outer.top - outer.height / 3;
  };
  if (document.querySelector(".drawn")) {
    document.addEventListener("pointerover", markBox);
    document.addEventListener("focusin", markBox);
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

  const line = ([number, when, level, word, message, isShortened]) => {
    const item = document.createElement("li");
    item.id = `l${number}`;
    item.value = number + 1;
    item.className = `l${Number(level)}`;
      const time = made("time", when);
      time.dateTime = `${when.replace(" ", "T")}Z`;
      localize(time);
      item.append(time, " ", made("b", word), " ", made("span", message));
      if (isShortened) {
        const link = made("a", "whole traceback");
        link.className = "whole";
        link.href = `${location.pathname}/${number}`;
        item.append(" ", link);
    }
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
