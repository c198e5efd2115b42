import { z } from 'zod';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { ProofWay, ProofWays, Proving } from '../../sign-in/challenge/prove.ts';
import { recordFailure, saveSettled } from '../../sign-in/lockout/failure.ts';
import { admit } from '../../sign-in/lockout/ladder.ts';
import { networkOf } from '../../sign-in/lockout/network.ts';
import { lockLadder } from '../../sign-in/lockout/store.ts';
import { accountSubject } from '../../sign-in/lockout/subject.ts';
import { beginAssertion, judgeAssertion, useAssertion } from '../../sign-in/passkeys/assert.ts';
import { assertionSchema, transactionId } from '../../sign-in/passkeys/schemas.ts';
import type { PasskeySignInDeps } from '../../sign-in/passkeys/sign-in.ts';
import { listPasskeys } from '../../sign-in/passkeys/store.ts';
import type { Passwords } from '../../sign-in/passwords/queue.ts';
import { findPhone, sendCode } from '../../sign-in/second-factors/channels.ts';
import { acceptTotp } from '../../sign-in/second-factors/totp.ts';
import type { SecondStepDeps } from '../../sign-in/second-step/complete.ts';
import { findPasswordHash, lockAccount } from '../accounts/store.ts';

interface ProofWayDeps {
  readonly step: SecondStepDeps;
  readonly passkeys: PasskeySignInDeps;
  readonly passwords: Passwords;
  /** A visit at a connected provider. */
  readonly reauthentication: ProofWay;
}

const codeProof = z.object({ code: z.string().min(1).max(16) });
const passwordProof = z.object({ password: z.string().min(1).max(1024) });
const passkeyProof = z.object({ transactionId, assertionResponse: assertionSchema });

const always = { use: async () => true };

/** Every way to prove to be the owner of an account that stands. */
export function createProofWays(deps: ProofWayDeps): ProofWays {
  return {
    Totp: totp(deps),
    Passkey: passkey(deps),
    ReOAuth: deps.reauthentication,
    Password: password(deps),
    EmailOtp: sent(deps, 'email'),
    SmsOtp: sent(deps, 'sms'),
  };
}

function totp({ step }: ProofWayDeps): ProofWay {
  return {
    strength: 'strong',
    isEnrolled: ({ hasTotp }) => hasTotp,
    begin: async () => null,
    async judge(proving, proof) {
      const parsed = codeProof.safeParse(proof);
      if (!parsed.success) return undefined;
      const { accountId } = proving;
      const { code } = parsed.data;
      const nowMs = step.clock.nowMs();
      const isRight = await counted(step, proving, (tx) => acceptTotp(step, tx, { accountId, code, nowMs }));
      return isRight ? always : undefined;
    },
  };
}

function password({ step, passwords }: ProofWayDeps): ProofWay {
  return {
    strength: 'basic',
    isEnrolled: ({ hasPassword }) => hasPassword,
    begin: async () => null,
    async judge(proving, proof) {
      const parsed = passwordProof.safeParse(proof);
      if (!parsed.success) return undefined;
      const stored = await findPasswordHash(step.db.read, proving.accountId);
      const { correct } = await passwords.verify(parsed.data.password, stored);
      return (await counted(step, proving, async () => correct)) ? always : undefined;
    },
  };
}

type Tx = Parameters<Parameters<SecondStepDeps['db']['transact']>[0]>[0];

/** Judges a guess that counts toward the lock of the account, and is not judged while it is locked. */
async function counted(
  { db, clock, lockoutSteps }: SecondStepDeps,
  { accountId, origin }: Proving,
  judge: (tx: Tx) => Promise<boolean>,
): Promise<boolean> {
  const subject = accountSubject(accountId);
  const network = networkOf(origin.ipAddress);
  return db.transact(async (tx) => {
    const nowMs = clock.nowMs();
    const ladder = await lockLadder(tx, subject, nowMs);
    const admission = admit(ladder, network, nowMs);
    if (admission.kind === 'slowed') {
      const { retryAfterSeconds } = admission;
      const code = genericCode('rate_limited');
      throw new AppError('rate_limited', code, 'Too many attempts.', { retryAfterSeconds });
    }
    const isRight = admission.kind === 'open' && (await judge(tx));
    if (isRight) return true;
    const outcome = admission.kind === 'open' ? 'wrong' : 'ignored';
    await saveSettled(tx, { subject, ladder, network, outcome, nowMs }, lockoutSteps);
    await recordFailure(tx, { subject, reason: 'challenge', origin, nowMs });
    return false;
  });
}

function passkey({ passkeys }: ProofWayDeps): ProofWay {
  return {
    strength: 'strong',
    isEnrolled: (means) => means.passkeys > 0,
    async begin(tx, { accountId }) {
      const allowed = (await listPasskeys(tx, accountId)).filter(({ status }) => status === 'Active');
      const begun = await beginAssertion(passkeys, tx, {
        ceremony: { purpose: 'proof', accountId },
        allowed,
      });
      return { transactionId: begun.transactionId, assertionOptions: begun.options };
    },
    async judge({ accountId, origin }, proof) {
      const parsed = passkeyProof.safeParse(proof);
      if (!parsed.success) return undefined;
      const { transactionId: transaction, assertionResponse: response } = parsed.data;
      const answer = { transactionId: transaction, response, purpose: 'proof', accountId, origin } as const;
      const asserted = await judgeAssertion(passkeys, answer);
      return { use: (tx) => useAssertion(passkeys, tx, asserted, origin) };
    },
  };
}

function sent({ step }: ProofWayDeps, channel: 'email' | 'sms'): ProofWay {
  const codes = channel === 'email' ? step.codes.emailProof : step.codes.smsProof;
  return {
    strength: 'basic',
    isEnrolled: (means) =>
      channel === 'email' ? means.hasEmailCodes : means.hasSmsCodes && step.messages.canSendTexts,
    async begin(tx, { accountId }) {
      const mail = channel === 'email' ? (await lockAccount(tx, accountId))?.email : undefined;
      const phone = channel === 'sms' ? await findPhone(step, tx, accountId) : undefined;
      const to = mail === undefined ? { phone: phone ?? '' } : { mail };
      await sendCode(step, tx, { codes, subject: accountId, to });
      return null;
    },
    async judge({ accountId }, proof) {
      const parsed = codeProof.safeParse(proof);
      if (!parsed.success) return undefined;
      const judged = await codes.judge(accountId, parsed.data.code);
      return typeof judged === 'string' ? undefined : { use: (tx) => codes.take(tx, judged) };
    },
  };
}
