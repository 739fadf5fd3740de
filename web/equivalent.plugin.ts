import type { Plugin } from 'swagger-ui-dist/swagger-ui-es-bundle.js';
import { parse, print } from 'graphql';
import { graphiqlLink } from './examples.ts';

/** The GraphQL equivalent of a REST operation: the OpenAPI extension `x-graphql`. */
interface Equivalent {
  operation: string;
  variables?: Record<string, unknown>;
}

/** Shows the GraphQL equivalent of each operation above its parameters. */
export const equivalentPlugin: Plugin = ({ React: { createElement, Fragment } }) => ({
  wrapComponents: {
    parameters: (Parameters) => (props) => {
      const parameters = createElement(Parameters, props);
      const equivalent = props.operation?.get('x-graphql')?.toJS() as Equivalent | undefined;
      if (!equivalent) return parameters;
      const variables =
        Object.keys(equivalent.variables ?? {}).length > 0
          ? JSON.stringify(equivalent.variables, null, 2)
          : '';
      const query = print(parse(equivalent.operation));
      const href = graphiqlLink({ query, variables });
      const heading = createElement(
        'h4',
        {},
        'GraphQL equivalent ',
        createElement('a', { href }, 'Open in GraphiQL'),
      );
      const text = (code: string) => createElement('pre', {}, createElement('code', {}, code));
      const section = createElement(
        'section',
        { className: 'equivalent' },
        heading,
        text(query),
        variables === '' ? null : text(variables),
      );
      return createElement(Fragment, {}, section, parameters);
    },
  },
});
