import { parser } from '@prometheus-io/lezer-promql';

/** What an expression asks of a metric. */
export interface Selector {
  metric: string;
  matchers: { label: string; operator: string; value: string }[];
}

/** What an expression of PromQL names: metrics with the labels that they are chosen by, and labels that results are put together by. */
export interface Named {
  selectors: Selector[];
  grouping: string[];
}

/** Reads an expression of PromQL. Throws where it is none. */
export function namesIn(expression: string): Named {
  const named: Named = { selectors: [], grouping: [] };
  parser.parse(expression).iterate({
    enter({ name, from, to, type, node }) {
      const text = expression.slice(from, to);
      if (type.isError) throw new Error(`no PromQL at ${from}: ${expression}`);
      if (name === 'VectorSelector') named.selectors.push({ metric: '', matchers: [] });
      const selector = named.selectors.at(-1);
      if (name === 'Identifier' && selector) selector.metric = text;
      if (name === 'LabelName' && node.parent?.name === 'GroupingLabels') named.grouping.push(text);
      if (name === 'UnquotedLabelMatcher' && selector) {
        const [, label = '', operator = '', value = ''] = /^(\w+)\s*(=~|!~|!=|=)\s*"(.*)"$/s.exec(text) ?? [];
        selector.matchers.push({ label, operator, value });
      }
    },
  });
  return named;
}
