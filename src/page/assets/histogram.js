// histogram
