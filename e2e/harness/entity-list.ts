import { createPrivateKey, sign, X509Certificate } from 'node:crypto';
import { createLoTE, service, signLoTE, trustedEntity } from '@owf/eudi-lote';
import type { Answer, Api } from './api.ts';
import type { IssuedCertificate } from './issued-certificate.ts';

const pidIssuance = 'http://uri.etsi.org/19602/SvcType/PID/Issuance';
const withdrawn = 'http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/withdrawn';
const dayMs = 86_400_000;

interface EntityList {
  readonly sequence: number;
  /** PEM of an authority that issues. */
  readonly anchor: string;
  readonly isWithdrawn?: true;
  /** The list should have been replaced a day ago. */
  readonly isStale?: true;
}

/** A list of trusted entities (ETSI TS 119 602) that `@owf/eudi-lote` writes, as a compact JWS of the signer. */
export async function signEntityList(list: EntityList, signer: IssuedCertificate): Promise<string> {
  const anchor = new X509Certificate(list.anchor).raw.toString('base64');
  const issuing = service().name('Issuance').type(pidIssuance).addCertificate(anchor);
  const offered = list.isWithdrawn === true ? issuing.status(withdrawn) : issuing;
  const address = { StreetAddress: 'Main Street 1', Locality: 'Berlin', PostalCode: '10115', Country: 'DE' };
  const entity = trustedEntity().name('Provider').postalAddress(address).email('a@example.org');
  const atDays = (days: number) => new Date(Date.now() + days * dayMs).toISOString();
  const scheme = {
    SchemeOperatorName: [{ lang: 'en', value: 'Test operator' }],
    SchemeTerritory: 'DE',
    LoTESequenceNumber: list.sequence,
    ListIssueDateTime: atDays(-2),
    NextUpdate: atDays(list.isStale === true ? -1 : 1),
  };
  const key = createPrivateKey(signer.key);
  const { jws } = await signLoTE({
    lote: createLoTE(scheme, [entity.addService(offered.build()).build()]),
    keyId: 'signer',
    certificates: [signer.certificate],
    signer: (input) =>
      sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url'),
  });
  return jws;
}

/** Uploads a list as an administrator of the installation does, with the signer that it must have. */
export async function uploadList(
  { api, token }: { readonly api: Api; readonly token: string },
  trustListId: string,
  { list, signerSha256 }: { readonly list: string; readonly signerSha256: string },
): Promise<Answer> {
  const form = new FormData();
  form.append('trustListId', trustListId);
  form.append('expectedSignerSha256', signerSha256);
  form.append('file', new Blob([list]), 'list.jws');
  const encoded = new Response(form);
  const type = encoded.headers.get('content-type') ?? '';
  return api.send('POST', '/api/v1/trust/trustlists/import', {
    token,
    text: await encoded.text(),
    headers: { 'content-type': type },
  });
}
