/** The used part of Swagger UI, which has no types. */
declare module 'swagger-ui-dist/swagger-ui-es-bundle.js' {
  import type { ComponentType, ReactElement, createElement, Fragment } from 'react';

  /** A part of the document, as an immutable map. */
  interface Part {
    get(name: string): Part | undefined;
    toJS(): unknown;
  }
  export type Component = ComponentType<{ operation?: Part }>;
  export type Plugin = (system: {
    React: { createElement: typeof createElement; Fragment: typeof Fragment };
  }) => {
    wrapComponents: Record<
      string,
      (original: Component) => (props: { operation?: Part }) => ReactElement
    >;
  };
  interface Ui {
    preauthorizeApiKey(scheme: string, credential: string): void;
    authActions: { logout(schemes: string[]): void };
  }
  /** A request before it is sent; `userFetch` replaces `fetch`. */
  interface Request {
    headers?: Record<string, string>;
    userFetch?: typeof fetch;
  }
  export default function SwaggerUI(options: {
    domNode: HTMLElement;
    spec: object;
    plugins: Plugin[];
    deepLinking: boolean;
    validatorUrl: null;
    requestInterceptor: (request: Request) => Promise<Request>;
    onComplete: () => void;
  }): Ui;
}
