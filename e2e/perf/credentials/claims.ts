/** Ten claims of a permit. */
export const tenClaims = {
  permitNumber: 'P-2026-00017',
  holder: 'Ada Lovelace',
  street: 'Long lane 4',
  locality: 'Test town',
  parcel: '12/345',
  area: 620,
  storeys: 3,
  purpose: 'Dwelling',
  decidedOn: '2026-05-04',
  office: 'Planning office',
};

/** Two of the ten. */
export const shownClaims = ['permitNumber', 'area'];
