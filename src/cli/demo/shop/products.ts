export interface Product {
  id: string;
  name: string;
  picture: string;
  /** Cents. */
  price: number;
  text: string;
}

export const products: readonly Product[] = [
  { id: 'teapot', name: 'Teapot', picture: '🫖', price: 2400, text: 'Short, stout, and answers with 418.' },
  { id: 'lamp', name: 'Lamp', picture: '💡', price: 3950, text: 'Warm light for long test runs.' },
  {
    id: 'cactus',
    name: 'Cactus',
    picture: '🌵',
    price: 1200,
    text: 'Needs as little care as a good cron job.',
  },
];

export function findProduct(id: string): Product | undefined {
  return products.find((product) => product.id === id);
}

export function formatPrice(cents: number): string {
  return `${(cents / 100).toFixed(2)} EUR`;
}
