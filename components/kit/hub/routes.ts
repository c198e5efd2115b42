import { z } from 'zod';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { App } from '#kit/http/http.ts';
import type { HubServer } from './server.ts';
import { instantSchema } from './subscriptions.ts';

const connectQuery = z.object({
  id: z.string().max(1_024).optional(),
  since: instantSchema.optional(),
  /** Read by kit/auth. */
  access_token: z.string().optional(),
});
const negotiateQuery = z.object({
  negotiateVersion: z.enum(['0', '1']).default('0').transform(Number),
  access_token: z.string().optional(),
});

/** Mounts the routes of a hub; `server` is called by handlers only. */
export function mountHubRoutes(
  app: App,
  { path, messageBytes }: { readonly path: string; readonly messageBytes: number },
  server: () => HubServer,
): void {
  app.webSocketPaths.add(path);
  app.register((scope: App, _options, done) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, parsed) => parsed(null, body));
    mountNegotiation(scope, path, server);
    mountConnection(scope, { path, messageBytes }, server);
    done();
  });
}

const config = { policy: 'RequirePlatformUser', hub: true } as const;

function mountNegotiation(app: App, path: string, server: () => HubServer): void {
  app.post(
    `${path}/negotiate`,
    { config: { ...config, rateLimit: 'Api' }, schema: { hide: true, querystring: negotiateQuery } },
    async (request, reply) => {
      const { negotiateVersion } = request.query;
      reply.header('cache-control', 'no-store');
      return server().negotiate({ request, caller: callerOf(request.caller) }, negotiateVersion);
    },
  );
}

function mountConnection(
  app: App,
  { path, messageBytes }: { readonly path: string; readonly messageBytes: number },
  server: () => HubServer,
): void {
  const limited = { ...config, rateLimit: 'Hub' } as const;
  const schema = { hide: true, querystring: connectQuery };
  app.get(path, { config: limited, schema, exposeHeadRoute: false }, async (request, reply) =>
    server().receive({ ...facts(request), request, reply }),
  );
  app.post(path, { config: limited, schema, bodyLimit: messageBytes }, async (request, reply) =>
    server().send({ ...facts(request), request, reply }),
  );
  app.delete(path, { config: limited, schema }, async (request, reply) =>
    server().end({ ...facts(request), request, reply }),
  );
}

interface ParsedRequest {
  readonly caller: Caller | undefined;
  readonly query: z.output<typeof connectQuery>;
}

function facts({ caller, query }: ParsedRequest) {
  return { caller: callerOf(caller), token: query.id, sinceMs: query.since };
}

function callerOf(caller: Caller | undefined): Caller {
  if (caller !== undefined) return caller;
  throw new AppError('unauthenticated', genericCode('unauthenticated'), 'Authentication is required.');
}
