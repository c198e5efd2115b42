import { z } from 'zod';
import { type App, problemSchema } from '#kit/http/http.ts';
import { refusal } from '../errors.ts';
import type { IssuerEvents } from '../events.ts';
import type { SvidIssue } from './issue.ts';

const BEARER = /^Bearer ([A-Za-z0-9._~+/-]{1,12288}=*)$/;

const question = z.strictObject({
  csr: z.string().min(1).max(8192).describe('PKCS#10 request with a P-256 key, PEM.'),
});

const answer = z.object({
  spiffeId: z.string(),
  chain: z.string().describe('PEM, leaf first.'),
  bundle: z.string().describe('PEM of every root to trust.'),
  expiresAt: z.iso.datetime(),
});

export interface SvidRouteDeps {
  readonly svids: SvidIssue;
  readonly events: IssuerEvents;
}

/** The issuer's only route. The cluster judges the token, so the policy of the route is Anonymous. */
export function mountSvidRoutes(app: App, { svids, events }: SvidRouteDeps): void {
  app.addHook('onError', (request, _reply, error, done) => {
    events.refused(error, request.ip);
    done();
  });
  app.post(
    '/svid',
    {
      config: { policy: 'Anonymous', rateLimit: 'Strict' },
      schema: {
        operationId: 'issueSvid',
        body: question,
        response: { 200: answer, '4xx': problemSchema, '5xx': problemSchema },
      },
    },
    async (request, reply) => {
      const token = BEARER.exec(request.headers.authorization ?? '')?.[1];
      if (token === undefined) throw refusal('token_missing');
      const { clientId, spiffeId, chain, bundle, expiresAtMs } = await svids.issue(token, request.body.csr);
      events.issued(clientId, expiresAtMs);
      reply.header('cache-control', 'no-store');
      return { spiffeId, chain, bundle, expiresAt: new Date(expiresAtMs).toISOString() };
    },
  );
}
