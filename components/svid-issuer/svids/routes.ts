import { z } from 'zod';
import { type App, addRoute, json } from '#kit/http/http.ts';
import { refusal, refusedSvid } from '../errors.ts';
import type { IssuerEvents } from '../events.ts';
import type { SvidIssue } from './issue.ts';

const BEARER = /^Bearer ([A-Za-z0-9._~+/-]{1,12288}=*)$/;

const question = z.strictObject({
  csr: z.string().min(1).max(8192).describe('PKCS#10 request with a P-256 key, PEM.'),
});

const issuedSchema = z.object({
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
  addRoute(app, {
    method: 'POST',
    path: '/svid',
    operationId: 'issueSvid',
    tag: 'Identity',
    summary: 'An X.509-SVID for the ServiceAccount token of the request',
    policy: 'Anonymous',
    rateLimit: 'Strict',
    body: { schema: question, example: { csr: '-----BEGIN CERTIFICATE REQUEST-----\nMIH...\n' } },
    answers: { 200: json('The identity.', issuedSchema) },
    refusals: refusedSvid,
    noStore: true,
    handle: async ({ body, request }) => {
      const token = BEARER.exec(request.headers.authorization ?? '')?.[1];
      if (token === undefined) throw refusal('token_missing');
      const { clientId, spiffeId, chain, bundle, expiresAtMs } = await svids.issue(token, body.csr);
      events.issued(clientId, expiresAtMs);
      return { spiffeId, chain, bundle, expiresAt: new Date(expiresAtMs).toISOString() };
    },
  });
}
