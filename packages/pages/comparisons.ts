import { Kind, OperationTypeNode, parse, print, type SelectionSetNode } from 'graphql';
import { z } from 'zod';
import type { Correspondence } from './correspondence.ts';
import type { Comparison, Selection } from './settings.ts';

/** The used part of a REST endpoint. */
export interface RestEndpoint {
  method: string;
  path: string;
  summary: string;
  access: unknown;
  input?: { form?: z.ZodType; json?: z.ZodType; headers?: z.ZodType };
  success: { body: z.ZodType };
  graphqlEquivalent: {
    operation: string;
    variables?: Readonly<Record<string, unknown>>;
    correspondences: readonly Correspondence[];
  };
}

/** Returns an endpoint with its GraphQL equivalent, for the home page to run and compare both. */
export function comparisonOf({
  method,
  path,
  summary,
  access,
  input,
  success,
  graphqlEquivalent: { operation, variables = {}, correspondences },
}: RestEndpoint): Comparison {
  const [definition] = parse(operation).definitions;
  if (definition?.kind !== Kind.OPERATION_DEFINITION)
    throw new Error(`The GraphQL equivalent of ${method} ${path} is no operation`);
  const isLogin = 'password' in variables;
  const isLogout = 'sessionKey' in variables;
  const takesBasic =
    isLogin && input?.headers instanceof z.ZodObject && 'authorization' in input.headers.shape;
  let kind: Comparison['kind'] = 'read';
  if (isLogin) kind = 'login';
  else if (isLogout) kind = 'logout';
  else if (definition.operation === OperationTypeNode.MUTATION) kind = 'create';
  return {
    method,
    path: path.replace(/\{(\w+)\}/g, (_all, name: string) => String(variables[name])),
    summary,
    kind,
    access: typeof access === 'string' ? access : 'login',
    ...(input?.form && { body: 'form' }),
    ...(input?.json && { body: 'json' }),
    ...(takesBasic && { body: 'basic' }),
    operation: {
      open: `${print(definition).split('{', 1)[0] ?? ''}{`,
      fields: fieldsOf(definition.selectionSet),
      close: '}',
    },
    response: responseOf(success.body),
    // The page adds the user.
    variables: isLogin ? {} : variables,
    correspondences,
  };
}

function fieldsOf({ selections }: SelectionSetNode): Selection['fields'] {
  return selections
    .filter((selection) => selection.kind === Kind.FIELD)
    .map(({ selectionSet, ...field }) => ({
      text: print(field),
      name: (field.alias ?? field.name).value,
      ...(selectionSet && {
        selection: { open: ' {', fields: fieldsOf(selectionSet), close: '}' },
      }),
    }));
}

/** The part of JSON Schema that describes fields. */
interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
}

function responseOf(body: z.ZodType): Selection {
  const root = z.toJSONSchema(body, { unrepresentable: 'any' }) as Schema;
  const selectionOf = ({ $ref, properties, items, anyOf }: Schema): Selection | undefined => {
    if ($ref !== undefined) return selectionOf(root.$defs?.[$ref.split('/').at(-1) ?? ''] ?? {});
    if (items) {
      const { fields } = selectionOf(items) ?? {};
      return fields && { open: '[', fields, close: ']' };
    }
    // A nullable object, or the last of several responses.
    if (anyOf) return anyOf.flatMap((schema) => selectionOf(schema) ?? []).at(-1);
    if (!properties) return undefined;
    const fields = Object.entries(properties).map(([name, schema]) => {
      const selection = selectionOf(schema);
      return {
        text: name,
        name,
        ...(selection && { selection: { ...selection, open: ` ${selection.open}` } }),
      };
    });
    return { open: '{', fields, close: '}' };
  };
  return selectionOf(root) ?? { open: '', fields: [], close: '' };
}
