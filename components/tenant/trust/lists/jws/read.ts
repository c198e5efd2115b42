import { compactVerify } from 'jose';
import type { z } from 'zod';
import { encodeBase64Url, isBase64Url } from '#core/encoding/base64.ts';
import { scanJson, toValue } from '#core/encoding/json.ts';
import { isAppError } from '#core/errors/errors.ts';
import { badSignature, malformed } from '../values/fault.ts';
import type { ListContent, ListedService, Signer } from '../values/list.ts';
import { parseName, parseSequence, parseTerritory, parseTime } from '../values/scheme.ts';
import { chooseSigner, type Pin } from '../values/signers.ts';
import { entityListSchema, headerSchema } from './schema.ts';

const granted = 'http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/granted';
const notified = 'http://uri.etsi.org/19602/PubEAAProvidersList/SvcStatus/notified';
const issuing = /^http:\/\/uri\.etsi\.org\/19602\/SvcType\/[A-Za-z]{1,32}\/Issuance$/;
/** The one type of the European profiles whose services have a status. */
const withStatus = 'http://uri.etsi.org/19602/SvcType/PubEAA/Issuance';

/** Extensions of the header that RFC 7515 lets a producer make critical, all without an effect on this reading. */
const criticalNames = { sigT: true, sigPId: true, 'x5t#o': true } as const;

/**
 * Verifies a compact JWS with the first certificate of `x5c` and reads the list of trusted entities in its payload.
 * @throws ListFault
 */
export async function readJws(
  text: string,
  pin: Pin,
): Promise<{ readonly content: ListContent; readonly signer: Signer }> {
  const header = parseHeader(text.slice(0, text.indexOf('.')));
  const { key, der, ...signer } = chooseSigner(header.x5c.slice(0, 1), pin);
  const named = header['x5t#S256'];
  if (named !== undefined && named !== encodeBase64Url(Buffer.from(signer.thumbprint, 'hex'))) {
    throw badSignature('x5t#S256 names another certificate than x5c');
  }
  const payload = await verify(text, header.alg, key);
  return { content: contentOf(payload), signer };
}

function parseHeader(part: string): z.output<typeof headerSchema> {
  const bytes = isBase64Url(part) ? Buffer.from(part, 'base64url') : undefined;
  const header = headerSchema.safeParse(bytes && parseJson(bytes, 'the header of the signature'));
  if (!header.success) throw badSignature('the header of the signature has not the required form');
  return header.data;
}

async function verify(
  text: string,
  alg: string,
  key: Parameters<typeof compactVerify>[1],
): Promise<Uint8Array> {
  try {
    const { payload } = await compactVerify(text, key, { algorithms: [alg], crit: criticalNames });
    return payload;
  } catch {
    throw badSignature('the signature does not fit the list');
  }
}

function parseJson(bytes: Uint8Array, name: string): unknown {
  try {
    return toValue(scanJson(bytes));
  } catch (error) {
    if (isAppError(error)) throw malformed(`${name} is no strict JSON`);
    throw error;
  }
}

function contentOf(payload: Uint8Array): ListContent {
  const parsed = entityListSchema.safeParse(parseJson(payload, 'the payload'));
  if (!parsed.success) {
    const path = parsed.error.issues[0]?.path.map(String).join('.') ?? '';
    throw malformed(`the payload is no list of trusted entities: ${path.slice(0, 200)}`);
  }
  const { ListAndSchemeInformation: scheme, TrustedEntitiesList: entities } = parsed.data.LoTE;
  const { SchemeTerritory: territory, NextUpdate: nextUpdate } = scheme;
  return {
    format: 'jws',
    sequenceNumber: parseSequence(scheme.LoTESequenceNumber, 'LoTESequenceNumber'),
    schemeTerritory: territory === undefined ? undefined : parseTerritory(territory),
    schemeOperatorName: parseName(scheme.SchemeOperatorName),
    listIssueAtMs: parseTime(scheme.ListIssueDateTime, 'ListIssueDateTime'),
    nextUpdateAtMs: nextUpdate == null ? undefined : parseTime(nextUpdate, 'NextUpdate'),
    services: entities.flatMap((entity) => entity.TrustedEntityServices.map(serviceOf)),
  };
}

type Service = z.output<
  typeof entityListSchema
>['LoTE']['TrustedEntitiesList'][number]['TrustedEntityServices'][number];

function serviceOf({ ServiceInformation: service }: Service): ListedService {
  const { ServiceTypeIdentifier: type = '', ServiceStatus: status } = service;
  const isGranted = status === undefined ? type !== withStatus : status === granted || status === notified;
  const certificates = service.ServiceDigitalIdentity.X509Certificates ?? [];
  return {
    type,
    status,
    issues: issuing.test(type),
    isGranted,
    certificates: certificates.map(({ val }) => val),
  };
}
