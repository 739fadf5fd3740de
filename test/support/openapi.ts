import assert from 'node:assert/strict';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { features } from '../../src/features.ts';
import type { Config } from '../../src/core/config.ts';
import { openapiOf } from '../../src/rest/openapi.ts';

interface Response {
  $ref?: string;
  headers?: Record<string, { required?: boolean; schema: object }>;
  content?: Record<string, { schema: object }>;
}

interface Document {
  paths: Record<string, Record<string, { responses: Record<string, Response> }>>;
  components: { responses: Record<string, Response>; schemas: Record<string, object> };
}

/** The checked parts of a response. */
export interface CheckedAnswer {
  status: number;
  headers: Headers;
  text: string;
}

/** Validates values by the schemas of an OpenAPI document. */
export class Schemas {
  private readonly ajv = new Ajv2020({ strict: false, allErrors: true });
  private readonly validators = new Map<object, ValidateFunction>();

  constructor(components: object) {
    formats.default(this.ajv);
    this.ajv.addFormat('password', true).addSchema({ $id: 'document', components });
  }

  /** Returns why the value does not match the schema; undefined if it matches. */
  faultOf(schema: object, value: unknown): string | undefined {
    const validate =
      this.validators.get(schema) ??
      this.ajv.compile(
        JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')) as object,
      );
    this.validators.set(schema, validate);
    return validate(value) ? undefined : this.ajv.errorsText(validate.errors);
  }
}

/** Checks responses of REST endpoints against the OpenAPI document of their app. */
export class OpenApiChecker {
  private readonly document: Document;
  private readonly schemas: Schemas;
  private readonly templates: { pattern: RegExp; path: string }[];

  constructor(config: Config) {
    this.document = openapiOf(config, features) as unknown as Document;
    this.schemas = new Schemas(this.document.components);
    this.templates = Object.keys(this.document.paths).map((path) => ({
      path,
      pattern: new RegExp(`^${path.replace(/\/$/, '').replace(/\{\w+\}/g, '[^/]+')}/?$`),
    }));
  }

  /** Throws if the document lacks the response of an endpoint. `path` is relative to BASE_PATH. */
  check(method: string, path: string, { status, headers, text }: CheckedAnswer): void {
    const [pathname = ''] = path.split('?');
    const found = this.templates.filter(({ pattern }) => pattern.test(pathname));
    const documentedMethod = (method === 'HEAD' ? 'GET' : method).toLowerCase();
    const operation = found
      .map((template) => this.document.paths[template.path]?.[documentedMethod])
      .find((own) => own !== undefined);
    // Requests that Node itself rejects never reach an endpoint.
    if (!operation || !headers.has('x-request-id')) return;
    const what = `${method} ${pathname} returns ${status}`;
    const named =
      operation.responses[status] ?? (status >= 400 ? operation.responses['default'] : undefined);
    assert.ok(named, `${what}, which openapi.json lacks`);
    const { content, headers: documented = {} } =
      named.$ref === undefined ? named : this.referred(named.$ref);
    const missing = Object.keys(documented).filter(
      (name) => documented[name]?.required === true && !headers.has(name),
    );
    assert.deepEqual(missing, [], `${what} without ${missing.join()}`);
    if (!content || method === 'HEAD') return assert.equal(text, '', `${what} with a body`);
    const [type = ''] = (headers.get('content-type') ?? '').split(';');
    // docs/rest.md describes them.
    if (type === 'application/problem+json') return undefined;
    const schema = content[type]?.schema;
    assert.ok(schema, `${what} as ${type}, which openapi.json lacks`);
    const fault = this.schemas.faultOf(schema, JSON.parse(text));
    assert.equal(fault, undefined, `${what}: ${fault} in ${text.slice(0, 300)}`);
  }

  private referred(ref: string): Response {
    return this.document.components.responses[ref.slice('#/components/responses/'.length)] ?? {};
  }
}
