/*
 * The grammar of Kubernetes' label selectors: requirements, separated by commas, all of which hold.
 * https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
 */
const NAME = "[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?";
const DNS_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
const KEY = `(?:${DNS_LABEL}(?:\\.${DNS_LABEL})*/)?${NAME}`;
const VALUE = `(?:${NAME})?`;

const requirement = new RegExp(
  `^(?:!\\s*${KEY}|${KEY}(?:\\s*(?:==?|!=)\\s*${VALUE}|\\s+(?:in|notin)\\s*\\(\\s*${VALUE}(?:\\s*,\\s*${VALUE})*\\s*\\))?)$`,
);

/** Between requirements, not between the values in parentheses. */
const COMMA = /,(?![^(]*\))/;

/** Why Kubernetes wouldn't take a label selector; undefined: it would. Empty selects everything. */
export function labelSelectorProblem(selector: string): string | undefined {
  if (selector.trim() === "") return undefined;
  const wrong = selector.split(COMMA).find((part) => !requirement.test(part.trim()));
  if (wrong === undefined) return undefined;
  return `"${wrong.trim()}" is no requirement on labels: write key=value, key!=value, key in (a,b), key notin (a,b), key or !key`;
}
