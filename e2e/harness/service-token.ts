import { request } from 'node:https';
import { z } from 'zod';
import { systemClock } from '#kit/clock/clock.ts';
import { createLogger } from '#kit/log/log.ts';
import { connectWorkload } from '#kit/workload/workload.ts';
import type { LocalState } from './system.ts';

/** Key material as PEM; all absent for a caller without a certificate. */
export interface ClientCertificate {
  readonly key?: string;
  readonly cert?: string;
  readonly ca?: string;
}

export interface TokenAnswer {
  readonly status: number;
  readonly body: string;
}

/** The SVID of a client id, as the Workload API gives it. */
export async function fetchSvid(state: LocalState, clientId: string): Promise<Required<ClientCertificate>> {
  const log = createLogger({ service: 'journey', level: 'silent' });
  const workload = await connectWorkload({
    socket: state.spiffeSockets[clientId] ?? '',
    log,
    clock: systemClock(),
  });
  const { key, cert, ca } = workload.current();
  workload.stop();
  return { key, cert, ca };
}

/** Sends one client_credentials request to the mTLS token listener, with the given certificate. */
export function askToken(
  state: LocalState,
  certificate: ClientCertificate,
  clientId: string,
): Promise<TokenAnswer> {
  return postForm(state.mtlsTokenUrl, certificate, { grant_type: 'client_credentials', client_id: clientId });
}

function postForm(
  url: string,
  certificate: ClientCertificate,
  form: Readonly<Record<string, string>>,
): Promise<TokenAnswer> {
  const body = new URLSearchParams(form).toString();
  return new Promise((resolve, reject) => {
    const call = request(
      url,
      {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        ...certificate,
        // SVIDs name no host: the chain is verified, and the SPIFFE id is the name.
        checkServerIdentity: () => undefined,
        agent: false,
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }),
        );
      },
    );
    call.on('error', reject);
    call.end(body);
  });
}

const minted = z.object({
  access_token: z.string(),
  expires_in: z.number(),
  token_type: z.literal('Bearer'),
});

/** Mints a service token with the client's own SVID. */
export async function mintWithSvid(
  state: LocalState,
  clientId: string,
): Promise<{ token: string; clientId: string; expiresInSeconds: number }> {
  const answer = await askToken(state, await fetchSvid(state, clientId), clientId);
  if (answer.status !== 200) {
    throw new Error(`${clientId} got ${answer.status}: ${answer.body}`);
  }
  const { access_token: token, expires_in: expiresInSeconds } = minted.parse(JSON.parse(answer.body));
  return { token, clientId, expiresInSeconds };
}

/** Requests one client's token with another one's SVID; returns the refusal and throws when there is none. */
export async function refusedWithWrongSvid(
  state: LocalState,
  holder: string,
  wanted: string,
): Promise<string> {
  const answer = await askToken(state, await fetchSvid(state, holder), wanted);
  const { error } = z.object({ error: z.string() }).parse(JSON.parse(answer.body));
  if (answer.status !== 401 || error !== 'invalid_client') {
    throw new Error(`${holder} asking for ${wanted} got ${answer.status}: ${answer.body}`);
  }
  return `${answer.status} ${error}`;
}

/** Exchanges a person's token for one with which a service acts for them (RFC 8693), by the service's own SVID. */
export async function delegateWithSvid(
  state: LocalState,
  clientId: string,
  subjectToken: string,
): Promise<string> {
  const answer = await postForm(`${state.mtlsTokenUrl}/delegated`, await fetchSvid(state, clientId), {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    client_id: clientId,
    subject_token: subjectToken,
    scope: 'wallets:sign wallets:decrypt',
  });
  if (answer.status !== 200) throw new Error(`${clientId} got ${answer.status}: ${answer.body}`);
  return minted.parse(JSON.parse(answer.body)).access_token;
}
