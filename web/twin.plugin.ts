import type { Plugin } from 'swagger-ui-dist/swagger-ui-es-bundle.js';
import { parse, print } from 'graphql';
import { graphiqlLink } from './examples.ts';

/** What the document says of the GraphQL operation that does the same. */
interface Twin {
  operation: string;
  variables?: Record<string, unknown>;
}

/** Shows the twin of each operation on the GraphQL door, above its parameters. */
export const twinPlugin: Plugin = ({ React: { createElement, Fragment } }) => ({
  wrapComponents: {
    parameters: (Parameters) => (props) => {
      const parameters = createElement(Parameters, props);
      const twin = props.operation?.get('x-graphql')?.toJS() as Twin | undefined;
      if (!twin) return parameters;
      const variables = Object.keys(twin.variables ?? {}).length > 0 ? JSON.stringify(twin.variables, null, 2) : '';
      const query = print(parse(twin.operation));
      const href = graphiqlLink({ query, variables });
      const heading = createElement('h4', {}, 'The same by GraphQL ', createElement('a', { href }, 'Open in GraphiQL'));
      const text = (what: string) => createElement('pre', {}, createElement('code', {}, what));
      const shown = createElement('section', { className: 'twin' }, heading, text(query), variables === '' ? null : text(variables));
      return createElement(Fragment, {}, shown, parameters);
    },
  },
});
