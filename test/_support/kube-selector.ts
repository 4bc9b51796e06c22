type Labels = Readonly<Record<string, string>>;

/** Whether labels match a selector of equalities and existences; undefined for one that the server can't parse. */
export function kubeSelector(selector: string): ((labels: Labels) => boolean) | undefined {
  if (selector === "") return () => true;
  const requirements = selector.split(",").map(requirementOf);
  if (requirements.includes(undefined)) return undefined;
  return (labels) => requirements.every((holds) => holds?.(labels));
}

function requirementOf(text: string): ((labels: Labels) => boolean) | undefined {
  const parsed = /^\s*(!)?\s*([\w./-]+)\s*(?:(==?|!=)\s*([\w.-]*))?\s*$/.exec(text);
  if (!parsed) return undefined;
  const [, not, key = "", operator, value] = parsed;
  if (operator === undefined) return (labels) => key in labels === (not === undefined);
  return (labels) => (labels[key] === value) === (operator !== "!=");
}
