import { createHash } from 'node:crypto';
import type { Element } from '@xmldom/xmldom';
import { badSignature, malformed } from '../values/fault.ts';
import type { ListContent, ListedService, Signer } from '../values/list.ts';
import { parseName, parseSequence, parseTerritory, parseTime } from '../values/scheme.ts';
import { chooseSigner, type Pin } from '../values/signers.ts';
import { childrenOf, findChild, getChild, parseXml, textOf } from './dom.ts';
import { DS_NS, LIST_NS, XML_NS } from './names.ts';
import { judgeSignature, type SignatureForm } from './signature.ts';
import { verifySignature } from './verify.ts';

const ROOT = 'TrustServiceStatusList';
const VERSIONS: readonly string[] = ['5', '6'];
const ISSUING: readonly string[] = [
  'http://uri.etsi.org/TrstSvc/Svctype/CA/QC',
  'http://uri.etsi.org/TrstSvc/Svctype/CA/PKC',
];
const GRANTED = 'http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/granted';

/**
 * Verifies the enveloped signature of a trusted list (ETSI TS 119 612 V2.4.1) and reads the list from the text that was
 * digested.
 *
 * @throws ListFault
 */
export async function readXml(
  text: string,
  pin: Pin,
): Promise<{ readonly content: ListContent; readonly signer: Signer }> {
  const { signed, signer } = await verify(text, pin);
  return { content: contentOf(rootOf(signed)), signer };
}

function rootOf(text: string): Element {
  const root = parseXml(text);
  if (root.namespaceURI !== LIST_NS || root.localName !== ROOT) throw malformed(`the root is no ${ROOT}`);
  return root;
}

async function verify(text: string, pin: Pin): Promise<{ readonly signed: string; readonly signer: Signer }> {
  const root = rootOf(text);
  const version = textOf(
    getChild(getChild(root, LIST_NS, 'SchemeInformation'), LIST_NS, 'TSLVersionIdentifier'),
  );
  if (!VERSIONS.includes(version)) throw malformed('the version of the list is neither 5 nor 6');
  const form = judgeSignature(root);
  const { key, der, ...signer } = chooseSigner(form.certificates, pin);
  assertNamed(form, der);
  return { signed: await verifySignature(root, form, key), signer };
}

/** The signed properties name the certificate, so that it cannot be replaced by another one of the same key. */
function assertNamed({ certificateDigest: named }: SignatureForm, der: Buffer): void {
  if (named === undefined) return;
  if (createHash(named.hash).update(der).digest('base64') !== named.value) {
    throw badSignature('the signed properties name another certificate');
  }
}

function contentOf(root: Element): ListContent {
  if (root.getElementsByTagNameNS(DS_NS, 'Signature').length > 0) throw badSignature('a signature is signed');
  const scheme = getChild(root, LIST_NS, 'SchemeInformation');
  const own = (name: string) => textOf(getChild(scheme, LIST_NS, name));
  if (!VERSIONS.includes(own('TSLVersionIdentifier')))
    throw malformed('the version of the list is neither 5 nor 6');
  const territory = findChild(scheme, LIST_NS, 'SchemeTerritory');
  const nextUpdate = findChild(scheme, LIST_NS, 'NextUpdate');
  const next = nextUpdate && findChild(nextUpdate, LIST_NS, 'dateTime');
  const names = childrenOf(getChild(scheme, LIST_NS, 'SchemeOperatorName'), LIST_NS, 'Name');
  return {
    format: 'xml',
    sequenceNumber: parseSequence(own('TSLSequenceNumber'), 'TSLSequenceNumber'),
    schemeTerritory: territory && parseTerritory(textOf(territory)),
    schemeOperatorName: parseName(
      names.map((name) => ({ lang: name.getAttributeNS(XML_NS, 'lang') ?? '', value: textOf(name) })),
    ),
    listIssueAtMs: parseTime(own('ListIssueDateTime'), 'ListIssueDateTime'),
    nextUpdateAtMs: next && parseTime(textOf(next), 'NextUpdate'),
    services: servicesOf(root),
  };
}

function servicesOf(root: Element): readonly ListedService[] {
  return descend([root], 'TrustServiceProviderList', 'TrustServiceProvider', 'TSPServices', 'TSPService').map(
    (service) => serviceOf(getChild(service, LIST_NS, 'ServiceInformation')),
  );
}

function descend(from: readonly Element[], ...names: readonly string[]): readonly Element[] {
  return names.reduce(
    (parents, name) => parents.flatMap((parent) => childrenOf(parent, LIST_NS, name)),
    from,
  );
}

/** The present state of a service; its history is not read. */
function serviceOf(information: Element): ListedService {
  const type = textOf(getChild(information, LIST_NS, 'ServiceTypeIdentifier'));
  const status = textOf(getChild(information, LIST_NS, 'ServiceStatus'));
  const certificates = descend([information], 'ServiceDigitalIdentity', 'DigitalId', 'X509Certificate');
  return {
    type,
    status,
    issues: ISSUING.includes(type),
    isGranted: status === GRANTED,
    certificates: certificates.map(textOf),
  };
}
