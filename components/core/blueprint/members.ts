import { z } from 'zod';

/**
 * What a member of a blueprint counts for: `behaviour` for all three hashes, `structure` for the structural hash and
 * the publication, `text` for the publication alone, `server` for none (services keep it and never publish it).
 */
export type MemberKind = 'behaviour' | 'structure' | 'text' | 'server';

type Members = Readonly<Record<string, MemberKind>>;

/** Every member of a blueprint, by the object that it belongs to. Extensions (`x-...`) are structure. */
export const BLUEPRINT_MEMBERS = {
  blueprint: {
    '@context': 'structure',
    '@type': 'structure',
    id: 'behaviour',
    title: 'text',
    description: 'text',
    version: 'server',
    participants: 'behaviour',
    actions: 'behaviour',
    dataSchemas: 'behaviour',
    instructions: 'text',
    instanceReference: 'behaviour',
    presentationConfig: 'behaviour',
    metadata: 'text',
    organizationId: 'server',
    createdAt: 'server',
    updatedAt: 'server',
    versionMajor: 'server',
    versionMinor: 'server',
  },
  participant: {
    id: 'behaviour',
    name: 'text',
    organisation: 'text',
    walletAddress: 'behaviour',
    didUri: 'structure',
    useStealthAddress: 'behaviour',
    instructions: 'text',
    verifiableCredential: 'structure',
    additionalProperties: 'structure',
  },
  action: {
    id: 'behaviour',
    title: 'text',
    description: 'text',
    instructions: 'text',
    sender: 'behaviour',
    isStartingAction: 'behaviour',
    requiredPriorActions: 'behaviour',
    dataSchemas: 'behaviour',
    calculations: 'behaviour',
    disclosures: 'behaviour',
    routes: 'behaviour',
    participants: 'behaviour',
    condition: 'behaviour',
    requiredActionData: 'behaviour',
    target: 'behaviour',
    additionalRecipients: 'structure',
    previousTxId: 'structure',
    previousData: 'structure',
    blueprint: 'structure',
    published: 'structure',
    credentialRequirements: 'behaviour',
    credentialIssuanceConfig: 'behaviour',
    rejectionConfig: 'behaviour',
    form: 'structure',
    notification: 'behaviour',
  },
  route: {
    id: 'behaviour',
    nextActionIds: 'behaviour',
    condition: 'behaviour',
    isDefault: 'behaviour',
    description: 'text',
    branchDeadline: 'behaviour',
    outputMapping: 'behaviour',
    'x-decision-notice': 'behaviour',
  },
} as const satisfies Readonly<Record<string, Members>>;

export type BlueprintPart = keyof typeof BLUEPRINT_MEMBERS;

/** The kind of a member; undefined for one that the schema does not have. */
export function memberKind(part: BlueprintPart, name: string): MemberKind | undefined {
  const members: Members = BLUEPRINT_MEMBERS[part];
  if (Object.hasOwn(members, name)) return members[name];
  return name.startsWith('x-') ? 'structure' : undefined;
}

/** Maximum size of the canonical JSON of a definition, bytes. */
export const MAX_BLUEPRINT_BYTES = 524_288;
export const MAX_PUBLISHER = 255;

const blueprintId = z.string().regex(/^[a-z0-9][a-z0-9-]{1,63}$/);
const word = (most: number) => z.string().min(1).max(most);
const schemas = z.array(z.union([z.boolean(), z.record(z.string(), z.unknown())]));

const route = z.looseObject({
  id: word(100),
  nextActionIds: z.array(z.int().min(0)).max(8).optional(),
});

const action = z.looseObject({
  id: z.int().min(0),
  title: word(100),
  sender: word(64),
  dataSchemas: schemas.max(8).optional(),
  routes: z.array(route).optional(),
});

const participant = z.looseObject({ id: word(64), name: word(100) });

/**
 * The parts of a blueprint that the ledger relies on: participants, actions, and the members that its hashes read. The
 * blueprint service judges whether the workflow makes sense.
 */
const shape = z.looseObject({
  id: blueprintId,
  title: z.string().min(3).max(200),
  description: z.string().min(5).max(2000),
  participants: z.array(participant).min(2).max(32),
  actions: z.array(action).min(1).max(200),
  dataSchemas: schemas.optional(),
  metadata: z.record(z.string(), z.string()).optional(),
});

/** A blueprint's definition: JSON data that matches the schema. */
export type Definition = z.output<typeof shape>;

export interface DefinitionFault {
  /** JSON Pointer into the definition */
  readonly location: string;
  readonly message: string;
}

/** A JSON Pointer of member names and indexes (RFC 6901). */
export function jsonPointer(path: readonly PropertyKey[]): string {
  return path.map((each) => `/${String(each).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

function repeated(definition: Definition, name: 'participants' | 'actions'): DefinitionFault[] {
  const ids = definition[name].map(({ id }) => id);
  return ids.flatMap((id, index) =>
    ids.indexOf(id) === index ? [] : [{ location: `/${name}/${index}/id`, message: 'is there twice' }],
  );
}

/** Parses a definition, or lists what is wrong with it. Members that the schema does not have are refused. */
export function readDefinition(value: unknown): Definition | readonly DefinitionFault[] {
  const result = shape.safeParse(value);
  if (!result.success) {
    return result.error.issues.map(({ path, message }) => ({ location: jsonPointer(path), message }));
  }
  // The input is returned, not the parsed copy: zod drops members that are named __proto__.
  const data = value as Definition;
  const unknown = Object.keys(data).filter((name) => memberKind('blueprint', name) === undefined);
  const faults = [
    ...unknown.map((name) => ({ location: jsonPointer([name]), message: 'is no member of a blueprint' })),
    ...repeated(data, 'participants'),
    ...repeated(data, 'actions'),
  ];
  return faults.length > 0 ? faults : data;
}
