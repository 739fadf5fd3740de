import { parser } from '@prometheus-io/lezer-promql';

/** A metric in an expression, with its label matchers. */
export interface Selector {
  metric: string;
  matchers: { label: string; operator: string; value: string }[];
}

/** The metrics and the grouping labels of a PromQL expression. */
export interface Named {
  selectors: Selector[];
  grouping: string[];
}

/** Parses a PromQL expression. Throws if it is invalid. */
export function namesIn(expression: string): Named {
  const named: Named = { selectors: [], grouping: [] };
  parser.parse(expression).iterate({
    enter({ name, from, to, type, node }) {
      const text = expression.slice(from, to);
      if (type.isError) throw new Error(`Invalid PromQL at ${from}: ${expression}`);
      if (name === 'VectorSelector') named.selectors.push({ metric: '', matchers: [] });
      const selector = named.selectors.at(-1);
      if (name === 'Identifier' && selector) selector.metric = text;
      if (name === 'LabelName' && node.parent?.name === 'GroupingLabels') named.grouping.push(text);
      if (name === 'UnquotedLabelMatcher' && selector) {
        const [, label = '', operator = '', value = ''] =
          /^(\w+)\s*(=~|!~|!=|=)\s*"(.*)"$/s.exec(text) ?? [];
        selector.matchers.push({ label, operator, value });
      }
    },
  });
  return named;
}
