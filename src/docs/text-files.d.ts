// Declares files that are imported as their text.
declare module "*.md" {
  const text: string;
  export default text;
}
declare module "*.css" {
  const text: string;
  export default text;
}
declare module "*/reference.js" {
  const text: string;
  export default text;
}
