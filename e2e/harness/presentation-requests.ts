import { decodeJwt } from 'jose';
import { z } from 'zod';
import type { Answer, Api } from './api.ts';

const asked = z.object({ requestId: z.string(), requestUri: z.string() });
const objectOf = z.object({ client_id: z.string(), nonce: z.string(), state: z.string() });
const verdict = z.object({
  state: z.string(),
  result: z
    .object({ errors: z.array(z.object({ code: z.string() })), verifiedClaims: z.object().loose() })
    .nullable(),
});

/** A request for presentations, as a wallet reads it without judging the verifier. */
export interface PresentationRequest {
  readonly requestId: string;
  readonly request: z.output<typeof objectOf>;
}

/** Requests for presentations of one caller, and what wallets post to them. */
export interface PresentationRequests {
  /** Asks for the number of a site permit, or for what the members say. */
  ask(json?: object): Promise<PresentationRequest>;
  post(to: PresentationRequest, form: Readonly<Record<string, string>>): Promise<Answer>;
  /** Posts one presentation in plain; query and state may be others. */
  answer(
    to: PresentationRequest,
    presentation: string,
    change?: { readonly id?: string; readonly state?: string },
  ): Promise<Answer>;
  resultOf(to: PresentationRequest): Promise<z.output<typeof verdict>>;
}

const permit = { credentialType: 'urn:platform:credential:site-permit', requiredClaims: ['permitNumber'] };

/** @param caller gives interface and token at each call, as an installation may not run yet */
export function presentationRequests(
  caller: () => { readonly api: Api; readonly token: string },
): PresentationRequests {
  const base = '/api/v1/verifier/requests';
  const post: PresentationRequests['post'] = ({ requestId }, form) =>
    caller().api.send('POST', `${base}/${requestId}/direct-post`, { form });
  return {
    ask: async (json = permit) => {
      const { api, token } = caller();
      const created = await api.expect(201, 'POST', base, { token, json });
      const { requestId, requestUri } = asked.parse(created.body);
      const object = await api.expect(200, 'GET', new URL(requestUri).pathname);
      return { requestId, request: objectOf.parse(decodeJwt(String(object.body))) };
    },
    post,
    answer: (to, presentation, { id = 'credential', state = to.request.state } = {}) =>
      post(to, { vp_token: JSON.stringify({ [id]: [presentation] }), state }),
    resultOf: async ({ requestId }) => {
      const { api, token } = caller();
      return verdict.parse((await api.expect(200, 'GET', `${base}/${requestId}/result`, { token })).body);
    },
  };
}
