import type { Step } from './steps.ts';

/** A database that does not do what it is asked for, and steps in which the service then differs from the model. */
interface Mutation {
  /** The event and the condition of a trigger. */
  readonly on: string;
  /** What the trigger does in place of the change. */
  readonly does: string;
  readonly steps: readonly Step[];
}

const honest = { wallet: 0, isHonest: true } as const;
const offer: Step = {
  act: 'offer',
  type: 0,
  hasTxCode: false,
  expiresInSeconds: 600,
  validitySeconds: undefined,
  boundTo: undefined,
};
const withTxCode: Step = { ...offer, hasTxCode: true };
const cancel: Step = { act: 'cancel', offer: 0 };
const token: Step = { ...honest, act: 'token', offer: 0, how: 'right' };
const wrong: Step = { ...token, how: 'wrong' };
const exchange: Step = { act: 'exchange', code: 0, wallet: 0, how: 'right' };
const refresh: Step = { ...honest, act: 'refresh', refresh: 0, how: 'right' };
const credential: Step = {
  ...honest,
  act: 'credential',
  token: 0,
  nonce: undefined,
  how: 'right',
  count: 1,
};
const replay: Step = { ...credential, nonce: 0 };
const batch: Step = { ...credential, count: 10 };
const suspend: Step = { act: 'status', credential: 0, verb: 'suspend', caller: 0 };
const revoke: Step = { ...suspend, verb: 'revoke' };
const request: Step = { act: 'request', caller: 0, type: 0, expiresInSeconds: 300 };
const present: Step = { ...honest, act: 'present', request: 0, credential: 0, how: 'own' };

const keep = 'return old';
const issued = [offer, token, credential];

/** Mutations by what the database no longer does, in either profile. */
export const mutations: Readonly<Record<string, Mutation>> = {
  'keeps no nonce that was used': {
    on: 'before insert on credential.used_values for each row',
    does: 'new.value_hash = sha256(random()::text::bytea); return new',
    steps: [...issued, replay],
  },
  'keeps no cancellation': {
    on: "before update on credential.offers for each row when (new.reason = 'cancelled')",
    does: keep,
    steps: [offer, cancel, token],
  },
  'counts no wrong transaction codes': {
    on: 'before update on credential.offers for each row when (new.tx_code_tries > 0)',
    does: keep,
    steps: [withTxCode, wrong, wrong, wrong, wrong, wrong, token],
  },
  'counts no credentials of a token': {
    on: 'before update on credential.access_tokens for each row',
    does: keep,
    steps: [offer, token, batch, credential],
  },
  'keeps no exchange': {
    on: "before update on credential.offers for each row when (new.status = 'Exchanged')",
    does: keep,
    steps: [offer, token, token],
  },
  'keeps no verdict': {
    on: "before update on credential.presentation_requests for each row when (new.status = 'Verified')",
    does: keep,
    steps: [...issued, request, present, present],
  },
  'keeps no status of a credential': {
    on: 'before update on credential.credentials for each row',
    does: keep,
    steps: [...issued, revoke, revoke],
  },
  'shows no status in its list': {
    on: 'before update on credential.status_lists for each row when (new.statuses <> old.statuses)',
    does: 'new.statuses = old.statuses; return new',
    steps: [...issued, suspend, request, present],
  },
};

/** Mutations of what haip-1.0 alone has. */
export const highAssuranceMutations: Readonly<Record<string, Mutation>> = {
  'keeps no use of a refresh token': {
    on: 'before update on credential.refresh_tokens for each row',
    does: keep,
    steps: [offer, token, refresh, { ...refresh, refresh: 1 }],
  },
  'keeps no use of an authorization code': {
    on: 'after delete on credential.authorization_codes for each row',
    does: 'insert into credential.authorization_codes select old.*; return null',
    // The exchange leaves the offer open only when it was of another verifier.
    steps: [
      offer,
      { ...token, how: 'without' },
      { act: 'approve', pushed: 0, isRight: true },
      { ...exchange, how: 'verifier' },
      exchange,
    ],
  },
};
