import { randomUUID } from 'node:crypto';
import { type JWTPayload, SignJWT } from 'jose';
import { issuerUrl, startMs } from './fixture.ts';
import { type IssuingCertificate, issuingCertificate } from './issuing-certificates.ts';
import type { WalletKey } from './wallet.ts';

type Members = Readonly<Record<string, unknown>>;

/** A maker of wallets, which attests their instances and keys. */
export class Attester {
  readonly certificate: IssuingCertificate;

  private constructor(certificate: IssuingCertificate) {
    this.certificate = certificate;
  }

  static async open(): Promise<Attester> {
    return new Attester(await issuingCertificate('maker.test', startMs));
  }

  async #sign(typ: string, payload: JWTPayload): Promise<string> {
    const x5c = this.certificate.chain.map((der) => Buffer.from(der).toString('base64'));
    return new SignJWT(payload)
      .setProtectedHeader({ alg: 'ES256', typ, x5c })
      .sign(this.certificate.privateKey);
  }

  /** The two headers of an attested wallet; members replace those of valid ones. */
  async headers(
    instance: WalletKey,
    nowSeconds: number,
    change: { readonly attestation?: Members; readonly proof?: Members; readonly typ?: string } = {},
  ): Promise<Record<string, string>> {
    const attestation = await this.#sign(change.typ ?? 'oauth-client-attestation+jwt', {
      sub: 'https://wallet.test',
      exp: nowSeconds + 600,
      iat: nowSeconds,
      cnf: { jwk: instance.jwk },
      ...change.attestation,
    });
    const proof = await new SignJWT({
      iss: 'https://wallet.test',
      aud: issuerUrl,
      jti: randomUUID(),
      iat: nowSeconds,
      ...change.proof,
    })
      .setProtectedHeader({ alg: 'ES256', typ: 'oauth-client-attestation-pop+jwt' })
      .sign(instance.privateKey);
    return { 'oauth-client-attestation': attestation, 'oauth-client-attestation-pop': proof };
  }

  attestKeys(keys: readonly WalletKey[], nowSeconds: number, change: Members = {}): Promise<string> {
    return this.#sign('key-attestation+jwt', {
      iat: nowSeconds,
      exp: nowSeconds + 600,
      attested_keys: keys.map(({ jwk }) => jwk),
      ...change,
    });
  }
}
