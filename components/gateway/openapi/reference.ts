import type { IncomingMessage, ServerResponse } from 'node:http';

export interface Reference {
  /** Answers a request below `/docs`. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  close(): Promise<void>;
}

/** Only the page's own scripts and styles; the viewer sets style attributes and shows images from data URLs. */
export const referencePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The reference page, from files of the package only. It is built on the first request. */
export function createReference(): Reference {
  let built: ReturnType<typeof build> | undefined;
  return {
    handle: async (request, response) => {
      built ??= build();
      const app = await built;
      app.routing(request, response);
    },
    close: async () => {
      const app = await built;
      await app?.close();
    },
  };
}

async function build() {
  const [{ default: fastify }, { default: swagger }, { default: swaggerUi }] = await Promise.all([
    import('fastify'),
    import('@fastify/swagger'),
    import('@fastify/swagger-ui'),
  ]);
  const app = fastify({ exposeHeadRoutes: true, routerOptions: { ignoreTrailingSlash: false } });
  await app.register(swagger, {
    mode: 'static',
    specification: {
      document: { openapi: '3.1.0', info: { title: 'Chancery', version: '2.6.0' }, paths: {} },
    },
  });
  // The viewer always requests ./json below its own path.
  app.addHook('onRequest', async (request, reply) => {
    if (request.url === '/docs/json' || request.url === '/docs/yaml') return reply.redirect('/openapi.json');
    return undefined;
  });
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    uiConfig: { deepLinking: true, docExpansion: 'none' },
    theme: { title: 'Chancery API' },
  });
  await app.ready();
  return app;
}
