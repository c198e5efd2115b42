import { z } from 'zod';
import { type App, addRoute, json } from '#kit/http/http.ts';
import { refusals } from '../../errors.ts';
import { unstored } from '../../requests/answers.ts';
import { originOf } from '../../requests/origin.ts';
import { proofLifetimeMs, SCOPED_OPERATIONS } from './gate.ts';
import { initiateProof, PROOF_METHODS, type ProveDeps, TARGET_KINDS, verifyProof } from './prove.ts';

const tag = 'Account security';

/** A member of a list of names, in any case. */
function anyCase<const Names extends readonly [string, ...string[]]>(names: Names) {
  return z.preprocess(
    (value) =>
      typeof value === 'string'
        ? (names.find((name) => name.toLowerCase() === value.trim().toLowerCase()) ?? value)
        : value,
    z.enum(names),
  );
}

const operation = {
  scopedOperation: anyCase(SCOPED_OPERATIONS),
  targetMethodKind: anyCase(TARGET_KINDS).nullish(),
};

const route = {
  method: 'POST',
  tag,
  policy: 'RequirePlatformUser',
  rateLimit: 'PlatformAuth',
  admits: ['password'],
  noStore: true,
} as const;

export function mountChallenge(app: App, deps: ProveDeps): void {
  addRoute(app, {
    ...route,
    path: '/api/auth/challenge/initiate',
    operationId: 'initiateProof',
    summary: 'Begin to prove to be the owner of the account, for one operation',
    body: {
      schema: z.object({ ...operation, preferredMethod: anyCase(PROOF_METHODS).nullish() }),
      example: { scopedOperation: 'ChangePassword' },
    },
    answers: {
      200: json(
        'The method, and what it needs.',
        z
          .object({
            method: z.enum(PROOF_METHODS),
            payload: z.unknown().describe('Null where nothing is needed.'),
          })
          .meta({ id: 'ProofRequest' }),
      ),
    },
    refusals: refusals('NoMethodAvailable', 'PASSKEYS_UNAVAILABLE', 'RATE_LIMITED'),
    handle: ({ caller, body, request }) =>
      initiateProof(deps, {
        caller,
        operation: body.scopedOperation,
        target: body.targetMethodKind ?? undefined,
        preferredMethod: body.preferredMethod ?? undefined,
        origin: originOf(request),
      }),
  });
  addRoute(app, {
    ...route,
    path: '/api/auth/challenge/verify',
    operationId: 'verifyProof',
    summary: 'Prove to be the owner of the account',
    body: {
      schema: z.object({ ...operation, method: anyCase(PROOF_METHODS), proof: z.unknown() }),
      example: { scopedOperation: 'ChangePassword', method: 'Totp', proof: { code: '123456' } },
    },
    answers: {
      200: json(
        'A token for the header X-Auth-Challenge.',
        z
          .object({ token: z.string(), expiresIn: z.int(), expiresInSeconds: z.int() })
          .meta({ id: 'ProofToken' }),
      ),
    },
    refusals: refusals(
      'proof_tier_insufficient',
      'WRONG_PROOF',
      'UNKNOWN_CREDENTIAL',
      'INVALID_ASSERTION',
      'RATE_LIMITED',
    ),
    handle: async ({ caller, body, request }) => {
      const token = await verifyProof(deps, {
        caller,
        operation: body.scopedOperation,
        target: body.targetMethodKind ?? undefined,
        method: body.method,
        proof: body.proof,
        origin: originOf(request),
      });
      const seconds = proofLifetimeMs / 1000;
      return unstored({ token, expiresIn: seconds, expiresInSeconds: seconds });
    },
  });
}
