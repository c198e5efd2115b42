/** A small definition: an example of bodies, and what a thread judges before its first work. */
export const smallDefinition = {
  id: 'invoice-approval',
  title: 'Approval of an invoice',
  description: 'A supplier sends an invoice, the buyer reads it.',
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
