// Texts that people type into fields, and why one is not used.

const NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;

/**
 * The number of a text; null if it is none.
 * @param {string} text
 */
export const numberOf = (text) => (NUMBER.test(text.trim()) ? Number(text) : null);

/**
 * Says beside a field why its text is not used. Without a complaint it is used.
 * @param {HTMLInputElement} input
 * @param {string} complaint
 */
export function complain(input, complaint) {
  input.setCustomValidity(complaint);
  let note = /** @type {HTMLElement | null} */ (input.nextElementSibling?.matches(".complaint") ? input.nextElementSibling : null);
  if (!complaint) {
    input.removeAttribute("aria-invalid");
    note?.remove();
    return;
  }
  input.setAttribute("aria-invalid", "true");
  if (!note) {
    note = document.createElement("span");
    note.className = "complaint warn";
    note.setAttribute("role", "alert");
    input.after(note);
  }
  note.textContent = complaint;
}

/**
 * Why a text is no range of colours; empty if it is one.
 * @param {string} text Without spaces.
 * @param {string} scale
 */
export function rangeComplaint(text, scale) {
  if (["", "auto", "slice", "type"].includes(text)) return "";
  const ends = text.split(",");
  const isPercent = ends.every((end) => end.endsWith("%"));
  const [low, high] = ends.map((end) => numberOf(isPercent ? end.slice(0, -1) : end));
  if (ends.length !== 2 || low === null || high === null) return "Not used: a range is two numbers, such as 0,40 or 2%,98%.";
  if (isPercent && (low < 0 || high > 100)) return "Not used: percentiles go from 0% to 100%.";
  if (low >= high) return "Not used: the smaller number comes first.";
  if (scale === "log" && !isPercent && low <= 0) return "Not used: a logarithmic range begins above 0.";
  return "";
}
