import { type KeyObject, randomBytes, sign } from 'node:crypto';
import { issueMdoc } from '#core/credential/mdoc/issue.ts';
import { compactSdJwt, prepareSdJwt } from '#core/credential/sd-jwt/issue.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import { chain, dayMs, ecKey } from '#core/trust/testing/chains.ts';
import type { ListedStatus } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import type {
  CredentialJudge,
  IssuerClaim,
  RequestSource,
  ResolvedRequest,
} from '../wallets/credentials/judge.ts';

/** What the double of the credential service was asked. */
type Asked = Parameters<CredentialJudge['judgeIssuer']>;

/** An issuer of credentials, and a double of the credential service that knows it. */
export class TestIssuer {
  readonly type = 'urn:test:permit';
  readonly statusUri = 'https://issuer.test/lists/1';
  readonly judge: CredentialJudge;
  readonly asked: Asked[] = [];
  readonly statuses = new Map<number, ListedStatus>();
  readonly #privateKey: KeyObject;
  readonly certificate: Buffer;
  readonly #nowMs: number;
  /** Whether the credential service answers. */
  isAway = false;
  /** Indexes of statuses about which the credential service does not answer. */
  readonly unanswered = new Set<number>();
  isTrusted = true;
  /** The answer to the next request of a verifier. */
  resolve: (source: RequestSource) => Promise<ResolvedRequest> = () => Promise.reject(new Error('not asked'));

  constructor(nowMs: number) {
    this.#nowMs = nowMs;
    const key = ecKey('P-256');
    const validity = { notBeforeMs: nowMs - dayMs, notAfterMs: nowMs + 30 * dayMs };
    const [leaf] = chain('issuer', [key, ecKey('P-256')], { 0: validity }).ders;
    if (leaf === undefined) throw new Error('no certificate');
    this.certificate = leaf;
    this.#privateKey = key.privateKey;
    this.judge = {
      judgeIssuer: async (issuer, of) => this.#judged(issuer, of, { ...validity, publicKey: key.spki }),
      resolveRequest: (source) => this.resolve(source),
    };
  }

  /** A compact SD-JWT VC; members replace those of a sound one. */
  sdJwt(holderJwk: unknown, change: { payload?: object; claims?: JsonObject; header?: object } = {}): string {
    const iat = Math.floor(this.#nowMs / 1000);
    const unsigned = prepareSdJwt(
      {
        header: {
          alg: 'ES256',
          typ: 'dc+sd-jwt',
          x5c: [this.certificate.toString('base64')],
          ...change.header,
        },
        payload: {
          iss: 'https://issuer.test',
          vct: this.type,
          iat,
          exp: iat + 86_400,
          cnf: { jwk: holderJwk },
          status: { status_list: { idx: 7, uri: this.statusUri } },
          ...change.payload,
        },
        claims: change.claims ?? { permitNumber: 'P-1', address: { city: 'Ghent' } },
        disclosable: undefined,
      },
      randomBytes,
    );
    return compactSdJwt(unsigned, this.#sign(Buffer.from(unsigned.signingInput)));
  }

  /** base64url of IssuerSigned. */
  mdoc(deviceKey: JsonObject): Promise<string> {
    return issueMdoc(
      {
        docType: 'test.permit.1',
        nameSpaces: { 'test.permit': { permit_number: 'P-1', class: 'B' } },
        deviceKey,
        signedMs: this.#nowMs,
        validFromMs: this.#nowMs,
        validUntilMs: this.#nowMs + dayMs,
        status: { index: 8, uri: this.statusUri },
        certificates: [this.certificate],
      },
      { random: randomBytes, sign: async (message) => this.#sign(message) },
    );
  }

  #sign(data: Uint8Array): Buffer {
    return sign('sha256', data, { key: this.#privateKey, dsaEncoding: 'ieee-p1363' });
  }

  async #judged(
    issuer: IssuerClaim,
    of: Asked[1],
    known: { publicKey: Buffer; notBeforeMs: number; notAfterMs: number },
  ) {
    this.asked.push([issuer, of]);
    if (this.isAway || this.unanswered.has(of.status?.index ?? -1)) throw refusal('CREDENTIALS_UNAVAILABLE');
    const [leaf] = issuer.certificates;
    const isKnown = leaf !== undefined && this.certificate.equals(leaf);
    const status = of.status === undefined ? undefined : (this.statuses.get(of.status.index) ?? 'Active');
    return {
      ...known,
      publicKey: isKnown ? known.publicKey : undefined,
      isTrusted: this.isTrusted,
      reason: this.isTrusted ? undefined : 'TRUST_NO_SOURCE',
      status: this.isTrusted ? status : undefined,
    } as const;
  }
}
