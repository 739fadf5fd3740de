/** The used part of Swagger UI. */
declare module 'swagger-ui-dist/swagger-ui-es-bundle.js' {
  import type { ComponentType, createElement } from 'react';

  /** A request that is about to be sent. */
  export interface SwaggerRequest extends RequestInit {
    headers: Record<string, string>;
    userFetch?: (url: string, request: SwaggerRequest) => Promise<Response>;
  }

  /** Returns components that replace or add to those of Swagger UI, by their names. */
  export type SwaggerPlugin = (system: { React: { createElement: typeof createElement } }) => {
    components: Record<string, ComponentType<never>>;
  };

  interface Options {
    domNode: HTMLElement;
    spec: object;
    layout: string;
    plugins: SwaggerPlugin[];
    deepLinking: boolean;
    tryItOutEnabled: boolean;
    requestInterceptor: (request: SwaggerRequest) => SwaggerRequest;
    showMutatedRequest: boolean;
    syntaxHighlight: { theme: string };
    onComplete: () => void;
  }

  export default function SwaggerUI(options: Options): {
    preauthorizeApiKey(scheme: string, value: string): void;
  };
}
