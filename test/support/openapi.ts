import assert from 'node:assert/strict';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { features } from '../../src/features.ts';
import type { Config } from '../../src/core/config.ts';
import { openapiOf } from '../../src/rest/openapi/openapi.ts';

interface Response {
  $ref?: string;
  headers?: Record<string, { required?: boolean; schema: object }>;
  content?: Record<string, { schema: object }>;
}

interface Document {
  paths: Record<string, Record<string, { responses: Record<string, Response> }>>;
  components: { responses: Record<string, Response>; schemas: Record<string, object> };
}

/** What of an answer is looked at. */
export interface Answered {
  status: number;
  headers: Headers;
  text: string;
}

/** The schemas of an OpenAPI document, which refer to its components. */
export class Schemas {
  private readonly ajv = new Ajv2020({ strict: false, allErrors: true });
  private readonly validators = new Map<object, ValidateFunction>();

  constructor(components: object) {
    formats.default(this.ajv);
    this.ajv.addFormat('password', true).addSchema({ $id: 'document', components });
  }

  /** Why the value is not what the schema says; undefined where it is. */
  faultOf(schema: object, value: unknown): string | undefined {
    const validate =
      this.validators.get(schema) ?? this.ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')) as object);
    this.validators.set(schema, validate);
    return validate(value) ? undefined : this.ajv.errorsText(validate.errors);
  }
}

/** Holds answers of the REST rows against the OpenAPI document of the app that gave them. */
export class Documented {
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

  /** Throws where the answer of a row is not one that the document knows. `path` is under BASE_PATH, as it was asked for. */
  check(method: string, path: string, { status, headers, text }: Answered): void {
    const [asked = ''] = path.split('?');
    const found = this.templates.filter(({ pattern }) => pattern.test(asked));
    const methodOfRow = (method === 'HEAD' ? 'GET' : method).toLowerCase();
    const operation = found.map((template) => this.document.paths[template.path]?.[methodOfRow]).find((own) => own !== undefined);
    // What Node refuses by itself never gets as far as a row.
    if (!operation || !headers.has('x-request-id')) return;
    const what = `${method} ${asked} answers ${status}`;
    const named = operation.responses[status] ?? (status >= 400 ? operation.responses['default'] : undefined);
    assert.ok(named, `${what}, which openapi.json does not know`);
    const { content, headers: documented = {} } = named.$ref === undefined ? named : this.referred(named.$ref);
    const missing = Object.keys(documented).filter((name) => documented[name]?.required === true && !headers.has(name));
    assert.deepEqual(missing, [], `${what} without ${missing.join()}`);
    if (!content || method === 'HEAD') return assert.equal(text, '', `${what} with a body`);
    const [type = ''] = (headers.get('content-type') ?? '').split(';');
    const schema = content[type]?.schema;
    assert.ok(schema, `${what} as ${type}, which openapi.json does not know`);
    const fault = this.schemas.faultOf(schema, JSON.parse(text));
    assert.equal(fault, undefined, `${what}: ${fault} in ${text.slice(0, 300)}`);
  }

  private referred(ref: string): Response {
    return this.document.components.responses[ref.slice('#/components/responses/'.length)] ?? {};
  }
}
