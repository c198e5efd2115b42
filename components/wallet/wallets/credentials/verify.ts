import { judgeIssuedMdocForm } from '#core/credential/mdoc/parse.ts';
import { verifyMdoc } from '#core/credential/mdoc/verify.ts';
import { subjectClaims } from '#core/credential/sd-jwt/registered-claims.ts';
import { judgeSdJwtForm, verifySdJwtVc } from '#core/credential/sd-jwt/verify.ts';
import type { StatusReference } from '#core/credential/status-list/reference.ts';
import { findSpkiKey, jwkThumbprint, type SignatureKey } from '#core/crypto/signature-key.ts';
import { isJsonObject, type JsonObject } from '#core/encoding/json.ts';
import { isReadableLine } from '#core/encoding/readable.ts';
import { equalBytes } from '#core/encoding/text.ts';
import { type AppError, type Violation, violation } from '#core/errors/errors.ts';
import { judgeX5c } from '#core/trust/x5c.ts';
import type { CredentialFormat } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { CredentialJudge, IssuerClaim, IssuerJudgement } from './judge.ts';

/** A credential that was verified. */
export interface VerifiedCredential {
  readonly format: CredentialFormat;
  readonly type: string;
  readonly issuer: string | undefined;
  readonly issuerClaim: IssuerClaim;
  readonly judgement: IssuerJudgement;
  readonly status: StatusReference | 'unsupported' | undefined;
  /** Whether it is bound to the holder key of the wallet; another key is that of the person's app. */
  readonly isBoundToHolderKey: boolean;
  /** Claims about the subject; of an mdoc, elements by namespace. */
  readonly claims: JsonObject;
  /** Names of the claims; of an mdoc `namespace/element`. */
  readonly names: readonly string[];
  readonly issuedAtMs: number | undefined;
  readonly expiresAtMs: number | undefined;
}

interface VerifyOptions {
  readonly judge: CredentialJudge;
  /** Public JWK of the holder key of the wallet; undefined for a wallet that has none. */
  readonly holderJwk: JsonObject | undefined;
  readonly nowMs: number;
}

/**
 * Verifies a credential that a wallet received: form, binding to a key, issuer's key, signature, digests,
 * lifetime. Only its issuer's name and the place of its status leave this service. An issuer that no source
 * vouches for is no reason to refuse it; the judgement says so.
 * @throws AppError unprocessable CREDENTIAL_INVALID with the code of the violation in its text,
 * CREDENTIAL_ISSUER_UNKNOWN; unavailable CREDENTIALS_UNAVAILABLE
 */
export async function verifyCredential(text: string, options: VerifyOptions): Promise<VerifiedCredential> {
  const verified = await (text.includes('~') ? verifySdJwt(text, options) : verifyDocument(text, options));
  const { type, issuer, status, names } = verified;
  const texts = [type, issuer, typeof status === 'object' ? status.uri : undefined, ...names];
  // People are shown them, and PostgreSQL stores no NUL.
  if (texts.some((one) => one !== undefined && !isReadableLine(one)))
    throw invalid([violation('FORMAT', 'A name or address has a character that cannot be read')]);
  return verified;
}

function invalid([{ code, message }]: readonly [Violation, ...Violation[]]): AppError {
  return refusal('CREDENTIAL_INVALID', { message: `${message} (${code})` });
}

async function verifySdJwt(text: string, options: VerifyOptions): Promise<VerifiedCredential> {
  const form = judgeSdJwtForm(text);
  if (form.result === undefined) throw invalid(form.violations);
  const { issuerJwt, keyBinding } = form.result;
  if (keyBinding !== undefined)
    throw invalid([violation('FORMAT', 'A presentation to a verifier is no credential to store')]);
  const isBoundToHolderKey = isBound(confirmedKey(issuerJwt.payload), options.holderJwk);
  const issuerClaim = claimOf(issuerJwt.header);
  // The signature is verified before anything that the credential names is asked.
  const { key } = await keyOf(options, issuerClaim, { isDocument: false, status: undefined });
  const { result, violations } = verifySdJwtVc(form.result, {
    issuerKey: key,
    algorithms: ['ES256'],
    types: undefined,
    keyBinding: undefined,
    atMs: options.nowMs,
  });
  if (result === undefined) throw invalid(violations);
  const { vct, issuer, claims, status, expiresAt } = result;
  const judgement = await options.judge.judgeIssuer(issuerClaim, {
    isDocument: false,
    status: referenceOf(status),
  });
  const subject = subjectClaims(claims);
  return {
    format: 'sd-jwt-vc',
    type: vct,
    issuer: issuer ?? (issuerClaim.keyId === '' ? undefined : issuerClaim.keyId.split('#', 1)[0]),
    issuerClaim,
    judgement,
    status,
    isBoundToHolderKey,
    claims: subject,
    names: Object.keys(subject),
    issuedAtMs: typeof claims['iat'] === 'number' ? claims['iat'] * 1000 : undefined,
    expiresAtMs: expiresAt === undefined ? undefined : expiresAt * 1000,
  };
}

async function verifyDocument(text: string, options: VerifyOptions): Promise<VerifiedCredential> {
  const form = judgeIssuedMdocForm(text);
  if (form.result === undefined) throw invalid(form.violations);
  const issuerClaim = { certificates: form.result.issuerAuth.x5chain, keyId: '' };
  const found = await keyOf(options, issuerClaim, { isDocument: true, status: undefined });
  const { result, violations } = verifyMdoc(form.result, {
    issuer: { key: found.key, notBeforeMs: found.notBeforeMs, notAfterMs: found.notAfterMs },
    docType: undefined,
    session: undefined,
    atMs: options.nowMs,
  });
  if (result === undefined) throw invalid(violations);
  const { docType, claims, status, validUntilMs } = result;
  const judgement = await options.judge.judgeIssuer(issuerClaim, {
    isDocument: true,
    status: referenceOf(status),
  });
  return {
    format: 'mso_mdoc',
    type: docType,
    issuer: undefined,
    issuerClaim,
    judgement,
    status,
    isBoundToHolderKey: isBound(result.deviceKey, options.holderJwk),
    claims,
    names: Object.entries(claims).flatMap(([space, elements]) =>
      Object.keys(elements ?? {}).map((name) => `${space}/${name}`),
    ),
    issuedAtMs: form.result.mso.signedMs,
    expiresAtMs: validUntilMs,
  };
}

function referenceOf(status: VerifiedCredential['status']): StatusReference | undefined {
  return status === 'unsupported' ? undefined : status;
}

/** The key in `cnf` of what the issuer signed (RFC 7800). */
function confirmedKey(payload: JsonObject): unknown {
  const { cnf } = payload;
  return isJsonObject(cnf) ? cnf['jwk'] : undefined;
}

/** @throws AppError unprocessable CREDENTIAL_INVALID for a credential that everyone who copies it can present */
function isBound(key: unknown, holderJwk: JsonObject | undefined): boolean {
  const bound = jwkThumbprint(key);
  if (bound === undefined)
    throw invalid([violation('KB_MISSING', 'The credential is bound to no key', 'cnf')]);
  const own = jwkThumbprint(holderJwk);
  return own !== undefined && equalBytes(bound, own);
}

function claimOf({ x5c, kid }: JsonObject): IssuerClaim {
  if (x5c === undefined) return { certificates: [], keyId: typeof kid === 'string' ? kid : '' };
  const { result, violations } = judgeX5c(x5c);
  if (result === undefined) throw invalid(violations);
  return { certificates: result.map(({ der }) => der), keyId: '' };
}

async function keyOf(
  { judge }: VerifyOptions,
  issuer: IssuerClaim,
  of: Parameters<CredentialJudge['judgeIssuer']>[1],
): Promise<{ readonly key: SignatureKey } & Pick<IssuerJudgement, 'notBeforeMs' | 'notAfterMs'>> {
  const { publicKey, reason, notBeforeMs, notAfterMs } = await judge.judgeIssuer(issuer, of);
  const key = publicKey && findSpkiKey(publicKey);
  if (key === undefined) {
    const message = `the key of the issuer cannot be found${reason === undefined ? '' : ` (${reason})`}`;
    throw refusal('CREDENTIAL_ISSUER_UNKNOWN', { message });
  }
  return { key, notBeforeMs, notAfterMs };
}
