import { z } from 'zod';
import { CHANGE_TYPES } from '#core/blueprint/changes.ts';

const text = z.string();
const hash = text.describe('64 lower-case hex digits.');

/** What the publication of a blueprint answers. */
export const publicationSchema = z
  .object({
    blueprintId: text,
    registerId: text,
    txId: text,
    publicationTxId: text.describe('The same as txId.'),
    execDefHash: hash,
    structuralHash: hash,
    version: text.describe('major.minor; expected, until the publication is sealed.'),
    changeType: z.enum(CHANGE_TYPES),
    submitted: z.boolean(),
    alreadyPublished: z.boolean(),
  })
  .meta({ id: 'BlueprintPublication' });

export type PresentedPublication = z.output<typeof publicationSchema>;

/** A small definition, as an example of bodies. */
export const definitionExample = {
  id: 'invoice-approval',
  title: 'Approval of an invoice',
  participants: [
    { id: 'supplier', name: 'Supplier' },
    { id: 'buyer', name: 'Buyer' },
  ],
  actions: [
    {
      id: 0,
      title: 'Send the invoice',
      sender: 'supplier',
      isStartingAction: true,
      dataSchemas: [{ type: 'object', properties: { amount: { type: 'number' } } }],
      disclosures: [{ participantAddress: 'buyer', dataPointers: ['/*'] }],
      routes: [{ id: 'end', nextActionIds: [], isDefault: true }],
    },
  ],
};
