import {
  ENVELOPED,
  EXCLUSIVE,
  listBody,
  rootClose,
  rootOpen,
  type SignatureWish,
  serviceOf,
  signList,
  type TestCertificate,
  type TestList,
} from '../lists.fixture.ts';
import type { ListFaultKind } from '../values/fault.ts';

/** Lists that must be refused, by what is wrong with them: their readers are tested with all of them. */

interface Wrapping {
  readonly kind: ListFaultKind;
  /** Part of the message of the refusal. */
  readonly message: string;
  readonly text: (list: TestList, signer: TestCertificate, evil: TestCertificate) => string;
}

const evilService = (evil: TestCertificate) => serviceOf({ certificates: [evil.base64] });

const forgedBody = (evil: TestCertificate) =>
  listBody({ sequence: 9, services: [{ certificates: [evil.base64] }] });

const otherRoot = rootOpen.replace('"TL"', '"W"');

const providersOf = (evil: TestCertificate, ns = '') =>
  `<TrustServiceProviderList${ns}><TrustServiceProvider><TSPServices>${evilService(evil)}</TSPServices>` +
  '</TrustServiceProvider></TrustServiceProviderList>';

/** Anchors inside the signature, which is not digested: the list is accepted without them. */
export function withAnchorsInSignature(text: string, evil: TestCertificate): string {
  const inside = providersOf(evil, ' xmlns="http://uri.etsi.org/02231/v2#"');
  return text.replace('</ds:KeyInfo>', `${inside}</ds:KeyInfo>`);
}

const hiddenSignature = (evil: TestCertificate) =>
  `<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#">${evilService(evil)}</ds:Signature>`;

/** A signed list whose original root is an object of its signature, below a root of the attacker. */
function movedIntoObject(list: TestList, signer: TestCertificate, evil: TestCertificate): string {
  const text = signList(list, { signer });
  const signature = text.slice(text.indexOf('<ds:Signature '), text.indexOf('</ds:Signature>'));
  const original = `${rootOpen}${listBody(list)}${rootClose}`;
  return (
    `${otherRoot}${forgedBody(evil)}${signature}` +
    `<ds:Object>${original}</ds:Object></ds:Signature>${rootClose}`
  );
}

const signedInfo = (text: string) =>
  text.slice(text.indexOf('<ds:SignedInfo'), text.indexOf('<ds:SignatureValue>'));

/** A further element in the object of the signature, with an Id that is another one's. */
const doubledId = (name: string): Wrapping => ({
  kind: 'malformed',
  message: 'Id occurs twice',
  text: (list, signer) =>
    signList(list, { signer }).replace('</ds:Object>', `<ds:X ${name}="xades-sig"/></ds:Object>`),
});

/**
 * Signed services that the document hides in an attribute which the library takes for the declaration of a namespace: it
 * does not escape the value and digests the same text.
 * @param attribute writes the attributes of an element from that value
 */
const hiddenServices =
  (attribute: (value: string) => string): Wrapping['text'] =>
  (list, signer, evil) => {
    const edge = '<p:x xmlns:p="u"></p:x>';
    const services = `<TSPServices>${evilService(evil)}</TSPServices>`;
    const text = signList({ ...list, extra: `${edge}${services}${edge}` }, { signer });
    const value = `u"></p:x>${services}<p:x xmlns:p="u`.replaceAll('<', '&lt;');
    return text.replace(`${edge}${services}${edge}`, `<p:x ${attribute(value)}></p:x>`);
  };

/** Signature wrapping: signed parts of a good list beside content of the attacker. */
export const WRAPPINGS: Readonly<Record<string, Wrapping>> = {
  'the signed root moved into a root of the attacker': {
    kind: 'signature',
    message: 'no signature below its root',
    text: (list, signer, evil) =>
      `${otherRoot}${forgedBody(evil)}<Extension>${signList(list, { signer })}</Extension>${rootClose}`,
  },
  'the signed root moved into a second object of its signature': {
    kind: 'signature',
    message: 'Object occurs twice',
    text: movedIntoObject,
  },
  'the signed root moved into the object of its signature': {
    kind: 'signature',
    message: 'does not fit',
    text: (...given) => movedIntoObject(...given).replace('</ds:Object><ds:Object>', ''),
  },
  'a second signature below the root, which an enveloped transform may remove too': {
    kind: 'signature',
    message: 'more than one',
    text: (list, signer, evil) =>
      signList(list, { signer }).replace(rootClose, `${hiddenSignature(evil)}${rootClose}`),
  },
  'a second signature between the services': {
    kind: 'signature',
    message: 'more than one',
    text: (list, signer, evil) =>
      signList(list, { signer }).replace('<TSPServices>', `<TSPServices>${hiddenSignature(evil)}`),
  },
  'a second signature in the object of the first one': {
    kind: 'signature',
    message: 'more than one',
    text: (list, signer, evil) =>
      signList(list, { signer }).replace(
        '</xades:QualifyingProperties>',
        `</xades:QualifyingProperties>${hiddenSignature(evil)}`,
      ),
  },
  'an Id twice': doubledId('Id'),
  'an ID with the value of an Id': doubledId('ID'),
  'an id with the value of an Id': doubledId('id'),
  'an xml:id with the value of an Id': doubledId('xml:id'),
  'a second list of services beside the signed one': {
    kind: 'signature',
    message: 'does not fit',
    text: (list, signer, evil) =>
      signList(list, { signer }).replace('<ds:Signature ', `${providersOf(evil)}<ds:Signature `),
  },
  'services in the name of a namespace': {
    kind: 'malformed',
    message: 'no URI',
    text: hiddenServices((value) => `xmlns:p='${value}'`),
  },
  'services in an attribute whose prefix ends as a declaration of a namespace begins': {
    kind: 'malformed',
    message: 'cannot be told',
    text: hiddenServices((value) => `axmlns:p='${value}' xmlns:axmlns='v' xmlns:p='u'`),
  },
  'an attribute that is not digested': {
    kind: 'malformed',
    message: 'cannot be told',
    text: (list, signer) =>
      signList(list, { signer }).replace('<TSPServices>', '<TSPServices xmlns:axmlns="v" axmlns:p="w">'),
  },
  'a prefix that is read as the default namespace': {
    kind: 'malformed',
    message: 'cannot be told',
    text: (list, signer) => signList(list, { signer }).replace('<TSPServices>', '<TSPServices xmlns:é="v">'),
  },
  'a second SignedInfo': {
    kind: 'signature',
    message: 'SignedInfo occurs twice',
    text: (list, signer) => {
      const text = signList(list, { signer });
      const info = signedInfo(text);
      return text.replace(info, `${info}${info.replace(' Id="list"', '')}`);
    },
  },
  'a reference of another namespace': {
    kind: 'signature',
    message: 'must cover the whole list',
    text: (list, signer) =>
      signList(list, { signer })
        .replace('<ds:Reference Id="list"', '<Reference Id="list"')
        .replace('</ds:Reference>', '</Reference>'),
  },
};

const transform = (algorithm: string, inside = '') =>
  `<ds:Transform Algorithm="${algorithm}">${inside}</ds:Transform>`;
const XPATH = 'http://www.w3.org/TR/1999/REC-xpath-19991116';

/** Transforms that a list must not be signed with. */
export const REFUSED_TRANSFORMS: Readonly<Record<string, string>> = {
  XPath: `${transform(ENVELOPED)}${transform(XPATH, '<ds:XPath>/*</ds:XPath>')}${transform(EXCLUSIVE)}`,
  'XPath instead of the enveloped one': `${transform(XPATH, '<ds:XPath>not(ancestor-or-self::ds:Signature)</ds:XPath>')}${transform(EXCLUSIVE)}`,
  'XPath Filter 2': `${transform('http://www.w3.org/2002/06/xmldsig-filter2')}${transform(EXCLUSIVE)}`,
  XSLT: `${transform(ENVELOPED)}${transform('http://www.w3.org/TR/1999/REC-xslt-19991116')}`,
  base64: `${transform(ENVELOPED)}${transform('http://www.w3.org/2000/09/xmldsig#base64')}`,
  comments: `${transform(ENVELOPED)}${transform(`${EXCLUSIVE}WithComments`)}`,
  'the enveloped one alone': transform(ENVELOPED),
  none: '',
  'the enveloped one last': transform(EXCLUSIVE) + transform(ENVELOPED),
  'the enveloped one twice': transform(ENVELOPED) + transform(ENVELOPED) + transform(EXCLUSIVE),
  'prefixes that are rendered inclusively': `${transform(ENVELOPED)}${transform(EXCLUSIVE, `<ec:InclusiveNamespaces xmlns:ec="${EXCLUSIVE}" PrefixList="#default"></ec:InclusiveNamespaces>`)}`,
};

/** References and canonicalizations that a list must not be signed with, with a part of the message of the refusal. */
export const REFUSED_SIGNATURES: Readonly<Record<string, readonly [Partial<SignatureWish>, string]>> = {
  'covers another element by its Id': [
    { listReference: 'Id="list" URI="#sig"' },
    'must cover the whole list',
  ],
  'covers the list twice': [
    {
      more:
        `<ds:Reference URI="#TL"><ds:Transforms>${transform(ENVELOPED)}${transform(EXCLUSIVE)}</ds:Transforms>` +
        '<ds:DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"></ds:DigestMethod>' +
        '<ds:DigestValue>AAAA</ds:DigestValue></ds:Reference>',
    },
    'must cover the whole list',
  ],
  'names no document': [{ listReference: 'Id="list"' }, 'must cover the whole list'],
  'covers an external document': [
    { listReference: 'Id="list" URI="https://lists.example.org/tl.xml"' },
    'must cover the whole list',
  ],
  'covers the document by XPointer': [
    { listReference: 'Id="list" URI="#xpointer(/)"' },
    'must cover the whole list',
  ],
  'covers properties of another type': [{ propertiesType: 'urn:other' }, 'must cover the whole list'],
  'has a third reference': [
    {
      more:
        '<ds:Reference URI="#TL"><ds:DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"></ds:DigestMethod>' +
        '<ds:DigestValue>AAAA</ds:DigestValue></ds:Reference>',
    },
    'must cover the whole list',
  ],
  'qualifies another signature': [{ target: '#other' }, 'of another signature'],
  'is canonicalized with comments': [
    { canonicalization: `${EXCLUSIVE}WithComments` },
    'transform is not allowed',
  ],
};

/** Document types and entities, which stand before a signed list. */
export const PROLOGUES: Readonly<Record<string, string>> = {
  'a document type': '<!DOCTYPE TrustServiceStatusList>',
  'an internal subset with entities': '<!DOCTYPE x [<!ENTITY e "granted">]>',
  'an external entity': '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>',
  'entities that multiply': '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>',
  'a document type in lower case': '<!doctype x>',
};

/** Changes after which a signed list is refused before anything is verified. */
export const MALFORMATIONS: Readonly<Record<string, (text: string) => string>> = {
  'a processing instruction before the root': (text) => `<?xml-stylesheet href="x"?>${text}`,
  'a processing instruction inside': (text) => text.replace('<TSPServices>', '<TSPServices><?x y?>'),
  'a processing instruction behind the root': (text) => `${text}<?x y?>`,
  'an entity that is not declared': (text) => text.replace('A service', '&e;'),
  'another encoding': (text) => `<?xml version="1.0" encoding="UTF-16"?>${text}`,
  'a prefix without a namespace': (text) => text.replace('<TSPServices>', '<TSPServices><q:x></q:x>'),
  'an element that is not closed': (text) => text.replace('</TSPServices>', ''),
  'text behind the root': (text) => `${text}x`,
  'two roots': (text) => `${text}${text}`,
  'an attribute twice': (text) => text.replace('Id="TL"', 'Id="TL" Id="TM"'),
  'an attribute without quotes': (text) => text.replace('Id="TL"', 'Id=TL'),
  'another root': (text) => text.replaceAll('TrustServiceStatusList', 'Other'),
  'another namespace': (text) => text.replace('02231/v2#', '02231/v3#'),
  'deep nesting': (text) => text.replace('A service', `${'<a>'.repeat(200)}${'</a>'.repeat(200)}`),
};
