export type EdmType = 'Edm.String' | 'Edm.Boolean' | 'Edm.Int64' | 'Edm.DateTimeOffset';

export interface Property {
  readonly name: string;
  readonly type: EdmType;
  /** Column of the rows of `candidates`. */
  readonly column: string;
  readonly nullable: boolean;
  /** Lower-case hexadecimal text: literals compared with it are lowered, and a GUID means its digits. */
  readonly hex: boolean;
}

export type SetName = 'Registers' | 'Transactions' | 'Dockets';

export interface EntitySet {
  readonly name: SetName;
  readonly entity: string;
  readonly keys: readonly string[];
  readonly properties: readonly Property[];
}

interface Kind {
  readonly nullable?: boolean;
  readonly hex?: boolean;
}

function property(name: string, type: EdmType, column: string, kind: Kind = {}): Property {
  return { name, type, column, nullable: kind.nullable ?? false, hex: kind.hex ?? false };
}

const text = (name: string, column: string, kind?: Kind) => property(name, 'Edm.String', column, kind);
const hex = (name: string, column: string, nullable = false) => text(name, column, { hex: true, nullable });
const integer = (name: string, column: string) => property(name, 'Edm.Int64', column);
const flag = (name: string, column: string) => property(name, 'Edm.Boolean', column);
const instant = (name: string, column: string) => property(name, 'Edm.DateTimeOffset', column);

const registers: EntitySet = {
  name: 'Registers',
  entity: 'Register',
  keys: ['id'],
  properties: [
    hex('id', 'register_id'),
    text('title', 'title'),
    text('description', 'description', { nullable: true }),
    text('purpose', 'purpose'),
    text('status', 'status'),
    integer('height', 'height'),
    integer('transactionCount', 'transaction_count'),
    flag('devMode', 'dev_mode'),
    flag('advertise', 'advertise'),
    flag('sandbox', 'sandbox'),
    integer('policyVersion', 'policy_version'),
    integer('validatorSetVersion', 'validator_set_version'),
    text('networkId', 'network_id'),
    hex('genesisTransactionId', 'genesis_transaction_id'),
    instant('createdAt', 'created_at'),
    instant('updatedAt', 'updated_at'),
  ],
};

const transactions: EntitySet = {
  name: 'Transactions',
  entity: 'Transaction',
  keys: ['registerId', 'txId'],
  properties: [
    hex('registerId', 'register_id'),
    hex('txId', 'tx_id'),
    hex('transactionId', 'tx_id'),
    text('transactionType', 'transaction_type'),
    text('senderAddress', 'sender_address'),
    text('blueprintId', 'blueprint_id', { nullable: true }),
    text('actionId', 'action_id', { nullable: true }),
    text('instanceId', 'instance_id', { nullable: true }),
    hex('previousTransactionId', 'previous_tx_id', true),
    instant('timestamp', 'created_at'),
    text('docketId', 'docket_id'),
    integer('docketNumber', 'docket_number'),
    integer('position', 'position'),
    text('status', 'status'),
  ],
};

const dockets: EntitySet = {
  name: 'Dockets',
  entity: 'Docket',
  keys: ['registerId', 'docketNumber'],
  properties: [
    hex('registerId', 'register_id'),
    integer('docketNumber', 'docket_number'),
    text('docketId', 'docket_id'),
    hex('hash', 'hash'),
    hex('previousHash', 'previous_hash'),
    hex('merkleRoot', 'merkle_root'),
    hex('logRoot', 'log_root'),
    integer('transactionCount', 'transaction_count'),
    instant('timestamp', 'sealed_at'),
    text('validatorAddress', 'validator_address'),
    hex('validatorSetHash', 'validator_set_hash'),
    flag('isGenesis', 'is_genesis'),
    integer('sizeBytes', 'size_bytes'),
  ],
};

/** The entity sets of `/odata/`: sealed history only, without any payload. */
export const ENTITY_SETS: Readonly<Record<SetName, EntitySet>> = {
  Registers: registers,
  Transactions: transactions,
  Dockets: dockets,
};

/** The property with that name; names are case-sensitive. */
export function findProperty(set: EntitySet, name: string): Property | undefined {
  return set.properties.find((one) => one.name === name);
}
