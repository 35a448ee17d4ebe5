"use strict";
// Parts of pages that refresh: each element with data-refresh, the address of a page that has a newer element of its id.
// Elements stay those that they were where they can, so that focus, scroll positions and open menus stay as well.
// A page shows in [data-refresh-status] that live updates are off, until this script runs and while they are interrupted.

(() => {
  const INTERVAL = 3000;
  const LONGEST_INTERVAL = 30000;
  const TIMEOUT = 30000;

  const parts = () => document.querySelectorAll("[data-refresh]");

  // ── what the page says ──

  const say = (text, link) => {
    const status = document.querySelector("[data-refresh-status]");
    if (!status || status.dataset.refreshStatus === text) return;
    status.dataset.refreshStatus = text;
    status.replaceChildren(text);
    if (!link) return;
    const element = document.createElement("a");
    [element.href, element.textContent] = link;
    status.append(" ", element);
  };

  // Live updates end until the page is loaded again.
  const stop = (text, ...link) => {
    for (const part of parts()) part.removeAttribute("data-refresh");
    say(text, link);
  };

  const reload = [location.href, "Reload the page"];

  // ── one element made like another ──

  // The first class names the kind of element, others its state.
  const kind = (node) => [node.nodeName, node.id, node.classList?.[0]].join();
  const alike = (node, fresh) => kind(node) === kind(fresh);

  const renewAttributes = (element, fresh) => {
    for (const { name } of [...element.attributes]) {
      // The user has opened a menu.
      const opened = name === "open" && element.matches("details");
      if (!opened && !fresh.hasAttribute(name)) element.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (element.getAttribute(name) !== value) element.setAttribute(name, value);
    }
  };

  const renew = (node, fresh) => {
    if (node.nodeType !== Node.ELEMENT_NODE) {
      if (node.data !== fresh.data) node.data = fresh.data;
      return;
    }
    renewAttributes(node, fresh);
    const named = new Map([...node.children].filter((child) => child.id).map((child) => [child.id, child]));
    let next = node.firstChild;
    for (const wanted of [...fresh.childNodes]) {
      const found = (wanted.id && named.get(wanted.id)) || next;
      if (!found || !alike(found, wanted)) {
        node.insertBefore(wanted, next);
        continue;
      }
      if (found === next) next = next.nextSibling;
      else node.insertBefore(found, next);
      renew(found, wanted);
    }
    while (next) {
      const after = next.nextSibling;
      next.remove();
      next = after;
    }
  };

  const replace = (part, fresh) => {
    const focused = document.activeElement;
    renew(part, fresh);
    // An element that moves loses the focus.
    if (focused?.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
    document.dispatchEvent(new Event("refreshed"));
  };

  // ── asking for newer parts ──

  const isSelected = (part) => {
    const selection = document.getSelection();
    return selection !== null && !selection.isCollapsed && selection.containsNode(part, true);
  };

  // A part waits while the user chooses, types or selects in it.
  const isUsed = (part) =>
    part.querySelector("input:checked") !== null ||
    (part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea")) ||
    isSelected(part);

  // The version of each part that the page shows. The server sends a part only if it has another one.
  const versions = new WeakMap();

  // Returns whether the server answered.
  const refresh = async (part) => {
    const headers = { "X-Refresh": part.id };
    if (versions.has(part)) headers["If-None-Match"] = versions.get(part);
    const options = { headers, cache: "no-store", signal: AbortSignal.timeout(TIMEOUT) };
    let answer, text;
    try {
      answer = await fetch(part.dataset.refresh, options);
      text = await answer.text();
    } catch {
      say("Live updates are interrupted: the server does not answer. They go on when it does.");
      return false;
    }
    if (answer.status === 401) {
      const login = `/login?next=${encodeURIComponent(location.pathname + location.search)}`;
      stop("Live updates are off: your session has ended.", login, "Log in");
      return true;
    }
    if (answer.status === 429 || answer.status >= 500) {
      say(`Live updates are interrupted: the server answers with an error (${answer.status}). They go on when it does not.`);
      return false;
    }
    if (answer.status === 304) {
      say("");
      return true;
    }
    const fresh = answer.ok && new DOMParser().parseFromString(text, "text/html").getElementById(part.id);
    if (!fresh) {
      stop("Live updates are off: the page is no longer what it was.", ...reload);
      return true;
    }
    if (!isUsed(part)) {
      replace(part, fresh);
      versions.set(part, answer.headers.get("ETag") ?? "");
    }
    say("");
    return true;
  };

  let interval = INTERVAL;
  let timer;

  const refreshAll = async () => {
    clearTimeout(timer);
    let answered = true;
    try {
      for (const part of document.hidden ? [] : parts()) {
        if (part.dataset.refresh && !isUsed(part)) answered = (await refresh(part)) && answered;
      }
    } catch (error) {
      stop("Live updates are off: refreshing the page failed.", ...reload);
      throw error;
    }
    interval = answered ? INTERVAL : Math.min(2 * interval, LONGEST_INTERVAL);
    clearTimeout(timer);
    timer = setTimeout(refreshAll, interval);
  };

  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(refreshAll, 0);
  };

  document.addEventListener("visibilitychange", () => document.hidden || soon());
  window.addEventListener("online", soon);
  timer = setTimeout(refreshAll, INTERVAL);
  say("");
})();
