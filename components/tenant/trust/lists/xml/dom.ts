import { DOMParser, type Document, type Element, type Node } from '@xmldom/xmldom';
import { malformed } from '../values/fault.ts';
import { XMLNS_NS } from './names.ts';

const deepest = 100;
/** Comments and CDATA sections are the only markup of this kind that a list may have: no DTD, no entities. */
const declaration = /<!(?!--|\[CDATA\[)/;
/** What a canonical form escapes in attributes. */
const escaped = /[<&"\t\n\r]/;
const declarationName = /^xmlns(?::[\w.-]+)?$/;
const encoding = /^<\?xml[^>]*\sencoding\s*=\s*["']([^"']*)["']/;

const isElement = (node: Node): node is Element => node.nodeType === node.ELEMENT_NODE;

/**
 * Parses XML strictly: UTF-8, no document type declaration, no processing instructions, bounded depth, no Id twice.
 * What a lenient parser would repair is refused.
 *
 * @throws ListFault malformed
 */
export function parseXml(text: string): Element {
  if (declaration.test(text)) throw malformed('the list has a document type declaration or entities');
  const declared = encoding.exec(text)?.[1];
  if (declared !== undefined && declared.toLowerCase() !== 'utf-8') throw malformed('the list is not UTF-8');
  const root = parse(text).documentElement;
  if (root === null) throw malformed('the list has no element');
  assertPlain(root);
  return root;
}

function parse(text: string): Document {
  try {
    const onError = (_level: string, message: string) => {
      throw new Error(message);
    };
    return new DOMParser({ onError }).parseFromString(text, 'application/xml');
  } catch {
    throw malformed('the list is no well-formed XML');
  }
}

function assertPlain(root: Element): void {
  for (const node of root.ownerDocument?.childNodes ?? []) assertNoInstruction(node);
  const ids = new Set<string>();
  for (const node of nodesBelow(root)) {
    assertNoInstruction(node);
    if (!isElement(node)) continue;
    assertNamespaces(node);
    collectIds(node, ids);
  }
}

/** The nodes of a tree in the order of the document, without recursion. @throws ListFault malformed when it is too deep */
function* nodesBelow(root: Element): Generator<Node> {
  let depth = 1;
  let node: Node | null = root;
  while (node !== null) {
    yield node;
    if (node.firstChild !== null) {
      depth += 1;
      if (depth > deepest) throw malformed(`elements are nested more than ${deepest} deep`);
      node = node.firstChild;
    } else {
      while (node !== null && node !== root && node.nextSibling === null) {
        depth -= 1;
        node = node.parentNode;
      }
      node = node === root ? null : (node?.nextSibling ?? null);
    }
  }
}

function assertNoInstruction(node: Node): void {
  if (node.nodeType === node.PROCESSING_INSTRUCTION_NODE && node.nodeName !== 'xml') {
    throw malformed('the list has a processing instruction');
  }
}

/**
 * The library writes the names of namespaces into the canonical form as they are: markup in them would become elements. It
 * knows a declaration by its spelling alone, `a-xmlns:b` too, and reads prefixes of ASCII only.
 */
function assertNamespaces(element: Element): void {
  for (const { namespaceURI, name, value } of element.attributes) {
    const isDeclaration = namespaceURI === XMLNS_NS;
    if (isDeclaration ? !declarationName.test(name) : name.includes('xmlns:'))
      throw malformed('a prefix cannot be told from a declaration of a namespace');
    if (isDeclaration && escaped.test(value)) throw malformed('the name of a namespace is no URI');
  }
}

function collectIds(element: Element, ids: Set<string>): void {
  for (const { localName, name, value } of element.attributes) {
    if ((localName ?? name).toLowerCase() !== 'id') continue;
    if (ids.has(value)) throw malformed('an Id occurs twice');
    ids.add(value);
  }
}

/** The child elements of a name, without those below them. */
export function childrenOf(parent: Element, ns: string, name: string): readonly Element[] {
  return elementsOf(parent).filter((child) => child.namespaceURI === ns && child.localName === name);
}

/** All child elements. */
export function elementsOf(parent: Element): readonly Element[] {
  const found: Element[] = [];
  for (let node = parent.firstChild; node !== null; node = node.nextSibling) {
    if (isElement(node)) found.push(node);
  }
  return found;
}

/** The only child element of a name; undefined without one. @throws ListFault malformed when there are several */
export function findChild(parent: Element, ns: string, name: string): Element | undefined {
  const found = childrenOf(parent, ns, name);
  if (found.length > 1) throw malformed(`${name} occurs twice`);
  return found[0];
}

/** The only child element of a name. @throws ListFault malformed */
export function getChild(parent: Element, ns: string, name: string): Element {
  const child = findChild(parent, ns, name);
  if (child === undefined) throw malformed(`${name} is missing`);
  return child;
}

/** The text of an element that has no element inside; comments are no part of it. @throws ListFault malformed */
export function textOf(element: Element): string {
  if (elementsOf(element).length > 0) throw malformed(`${element.localName} must hold text alone`);
  return (element.textContent ?? '').trim();
}
